package slurm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

var ann = caller{environ: []string{"HOME=/h", "PATH=/bin", "SLURM_X=1"}, directory: "/data", umask: 0o022}

// submit runs sbatch's steps up to the submission.
func submit(words []string, from caller, script string) (*submission, error) {
	s, err := parseSbatch(words)
	if err != nil {
		return nil, err
	}
	if name := s.order.Script.Name; script == "" && name != "" {
		b, err := os.ReadFile(filepath.Join("testdata/scripts", name))
		if err != nil {
			return nil, err
		}
		script = string(b)
	}
	return s.complete(from, script)
}

// otherwise contains the command lines that the shim refuses, but not as Slurm answers them, with the reasons.
var otherwise = map[string]string{
	"--nice=x --wrap true": "Slurm takes it for 0", "--priority=x --wrap true": "likewise",
	"--gpus=x: --wrap true": "refused by name", "--gres=foo --wrap true": "likewise",
	"-n 99999999999 --wrap true": "no number for us", "- ": "no file is read here",
	"--export --wrap true": "no file is read here",
}

// testdata/errors.txt contains command lines and the errors of Slurm 22.05's sbatch.
func TestErrors(t *testing.T) {
	content, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(string(content), "== ")[1:] {
		line, rest, _ := strings.Cut(one, "\n")
		want, _, _ := strings.Cut(rest, "rc ")
		s, err := submit(strings.Fields(line), ann, "")
		if err != nil && otherwise[line] != "" {
			continue
		}
		if err == nil {
			t.Errorf("sbatch %s: %+v; Slurm says\n%s", line, s, want)
			continue
		}
		if diff := cmp.Diff(want, notation.Message("sbatch", err)+"\n"); diff != "" {
			t.Errorf("sbatch %s:\n%s", line, diff)
		}
	}
}

func TestRefusedByName(t *testing.T) {
	for _, line := range []string{
		"--exclusive", "-C fast", "-w n1", "-x n1", "--begin=tomorrow", "-H", "-N 2", "-d aftercorr:3", "-d afterok:3?afterok:4",
		"--gpus=a100:2", "--gres=gpu:a100:1", "--licenses=x", "--reservation=r", "--uid=0", "--deadline=now",
		"--get-user-env", "--get-user-env=10L",
	} {
		_, err := submit(append(strings.Fields(line), "--wrap=true"), ann, "")
		if err == nil || !strings.Contains(err.Error(), " is not supported on a Corral cluster: ") {
			t.Errorf("sbatch %s: %v, want it refused by name", line, err)
		}
	}
	with := ann
	with.environ = []string{"SBATCH_CONSTRAINT=fast"}
	_, err := submit([]string{"--wrap=true"}, with, "")
	want := "sbatch: error: SBATCH_CONSTRAINT=fast is not supported on a Corral cluster: a job runs on any worker that it fits on"
	if err == nil || notation.Message("sbatch", err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := submit(strings.Fields("--mail-type=ALL -N1-4 --begin=now --hint=nomultithread --wrap=true"), ann, ""); err != nil {
		t.Errorf("harmless options: %v", err)
	}
}

// A command-line option takes precedence over the environment, and the environment over the script.
func TestPrecedence(t *testing.T) {
	script := "#!/bin/bash\n#SBATCH -J script -p script -A script --mem=1G\n#SBATCH -t 1-0\n#SBATCH -o 'a b-%j'\ntrue\n"
	with := ann
	with.environ = append(slices.Clone(with.environ), "SBATCH_PARTITION=env", "SBATCH_ACCOUNT=env", "SBATCH_MEM_PER_CPU=200",
		"SLURM_UMASK=0077")
	s, err := submit(strings.Fields("-A line -c2 -n 3 --array=1-3%2 dir/job.sh one -J"), with, script)
	if err != nil {
		t.Fatal(err)
	}
	size := notation.Size{CPUs: 6, Tasks: 3, CPUsPerTask: 2, MemoryMiB: 200, MemoryEach: true}
	wantSpec := spec{
		Account: "line", Directory: "/data", Output: "/data/a b-%j", Size: size, TimeLimit: corral.Seconds(24 * time.Hour), Array: "1-3%2", Requeue: true,
	}
	wantOrder := step.Order{
		Script: step.Script{Text: script, Name: "dir/job.sh", Args: []string{"one", "-J"}}, Environment: with.environ,
		Place: step.Place{Directory: "/data"}, Streams: step.Streams{Output: "a b-%j"},
		Limits: step.Limits{Umask: 0o077, Time: corral.Seconds(24 * time.Hour)}, Facts: step.Facts{Name: "script", Account: "line", Size: size},
		Array: "1-3%2",
	}
	wantArray := &notation.Array{Text: "1-3%2", Tasks: []int{1, 2, 3}, AtOnce: 2}
	if diff := cmp.Diff(wantSpec, s.spec) + cmp.Diff(wantOrder, s.order) + cmp.Diff(wantArray, s.array); diff != "" {
		t.Error(diff)
	}
	if s.partition != "env" || !slices.Equal(s.rlimits, step.Rlimits()) {
		t.Errorf("partition %q, limits %v", s.partition, s.rlimits)
	}
}

// --priority and --nice set the same number, of which lower values are preferred. TOP precedes all other values.
func TestNice(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "--nice": 100, "--nice=-7": -7, "--nice=2147483647": 2147483647, "--priority=7": -7, "--priority=0": 0,
		"--priority=TOP": -4294967293, "--priority=top": -4294967293, "--priority=4294967293": -4294967293,
	} {
		s, err := submit(append(strings.Fields(line), "--wrap=true"), ann, "")
		if err != nil || s.spec.Nice != want {
			t.Errorf("sbatch %s: %+v, %v; want %d", line, s, err, want)
		}
	}
	for _, line := range []string{"--nice=2147483648", "--priority=-1", "--priority=4294967294", "--priority=99999999999"} {
		if s, err := submit([]string{line, "--wrap=true"}, ann, ""); err == nil {
			t.Errorf("sbatch %s: %+v, want an error", line, s)
		}
	}
}

// These are the calls of workflow managers.
func TestClients(t *testing.T) {
	for _, test := range []struct {
		name, script string
		words        []string
		check        func(s *submission) bool
	}{
		{"Snakemake 7", "", []string{
			"--parsable", "-J", "5c1e", "-o", ".snakemake/slurm_logs/rule_a/%j.log", "--export=ALL", "-A", "lab", "-p", "normal", "--mem", "1000",
			"--cpus-per-task=4", "-D", "/data", "--wrap=python -m snakemake 'x y'",
		}, func(s *submission) bool {
			return s.order.Facts.Name == "5c1e" && s.parsable && s.order.Place.Directory == "/data" && s.spec.Size.CPUs == 4 && s.spec.Size.MemoryMiB == 1000 &&
				s.order.Script.Text == "#!/bin/sh\n# This script was created by sbatch --wrap.\n\npython -m snakemake 'x y'\n" && s.order.Facts.Export == ""
		}},
		{"Snakemake 8", "", []string{
			"--parsable", "--job-name", "uuid", "--output", "/l/%j.log", "--export=ALL", "--comment", "rule_a", "--ntasks=1", "-t", "5", "--mem=500",
			"--cpus-per-task=1", "-D", "/d", "--wrap=true",
		}, func(s *submission) bool {
			return s.spec.Comment == "rule_a" && s.spec.TimeLimit == corral.Seconds(5*time.Minute) && s.spec.Size.Tasks == 1
		}},
		{"Nextflow", "#!/bin/bash\n#SBATCH -J nf-a_(1)\n#SBATCH -o /w/.command.log\n#SBATCH --no-requeue\n" +
			"#SBATCH --signal B:USR2@30\n#SBATCH -c 2\n#SBATCH -t 01:00:00\n#SBATCH --mem 1024M\n#SBATCH -p normal\ntrue\n", []string{".command.run"},
			func(s *submission) bool {
				return s.order.Facts.Name == "nf-a_(1)" && !s.spec.Requeue && s.order.Limits.Warning.Batch && s.order.Limits.Warning.Before == 30*time.Second &&
					s.spec.Size.CPUs == 2 && s.spec.TimeLimit == corral.Seconds(time.Hour) && s.spec.Size.MemoryMiB == 1024
			}},
		{"Makeflow", "#!/bin/sh\ncmd\n", []string{"-D", ".", "-o", "/dev/null", "-e", "/dev/null", "--export=ALL", "--job-name=makeflow0", "slurm.wrapper"},
			func(s *submission) bool {
				return s.order.Place.Directory == "/data" && s.order.Streams.Error == "/dev/null" && s.order.Facts.Name == "makeflow0"
			}},
		{"Cromwell", "", []string{
			"--wait", "-J", "x", "-D", "/c", "-o", "/c/out", "-e", "/c/err", "-t", "10", "-p", "q", "-c", "1", "--mem-per-cpu=100", "--wrap", "/bin/bash s",
		}, func(s *submission) bool {
			return s.wait && s.spec.Size.MemoryEach && s.order.Streams.Error == "/c/err"
		}},
	} {
		s, err := submit(test.words, ann, test.script)
		if err != nil || !test.check(s) {
			t.Errorf("%s: %+v, %v", test.name, s, err)
		}
	}
}

func TestTooLong(t *testing.T) {
	_, err := submit([]string{"x"}, ann, "#!/bin/sh\n"+strings.Repeat("x", maxScript))
	want := "sbatch: error: Batch job submission failed: Pathname of a file, directory or other parameter too long"
	if err == nil || notation.Message("sbatch", err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// For any words and any script, a submission is complete or refused with a message.
func FuzzSubmission(f *testing.F) {
	f.Add("-J\na b\n--mem=1G\nscript\narg", "#!/bin/sh\n#SBATCH -c 2 --array=1-3\n", "SBATCH_PARTITION=x\nHOME=/h")
	f.Add("--wrap=true\n-d\nafterok:1,singleton", "", "SBATCH_MEM_PER_CPU=1")
	f.Add("--gpus=2\n--gres=gpu:1\n--nodes=1-2\n--propagate=NONE\n--signal=B:9@1", "#!/bin/sh\n", "SLURM_UMASK=7")
	f.Fuzz(func(t *testing.T, words, script, environ string) {
		from := caller{environ: strings.Split(environ, "\n"), directory: "/data"}
		command, err := parseSbatch(strings.Split(words, "\n"))
		if err == nil {
			var s *submission
			s, err = command.complete(from, script)
			if err == nil && (s.spec.Size.CPUs < 1 || s.spec.Size.Tasks < 1 || s.spec.Size.MemoryMiB < 0 || s.order.Facts.Name == "" ||
				!filepath.IsAbs(s.order.Place.Directory) || s.order.Streams.Output == "" || !strings.HasPrefix(s.order.Script.Text, "#!")) {
				t.Errorf("incomplete: %+v", s)
			}
		}
		if err != nil && notation.Message("sbatch", err) == "" {
			t.Error("an error without words")
		}
	})
}

// --wrap is not a directive: a script keeps its name and its text.
func TestWrapInAScript(t *testing.T) {
	const script = "#!/bin/sh\n#SBATCH --wrap=true\n"
	s, err := submit([]string{"dir/job.sh"}, ann, script)
	if err != nil || s.order.Facts.Name != "job.sh" || s.order.Script.Text != script {
		t.Errorf("%+v, %v", s, err)
	}
}
