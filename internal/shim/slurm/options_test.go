package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// wrapped returns the submission of a command line with --wrap, which must be accepted.
func wrapped(t *testing.T, from caller, line string) *submission {
	t.Helper()
	s, err := submit(append(strings.Fields(line), "--wrap=true"), from, "")
	if err != nil {
		t.Fatalf("sbatch %s: %v", line, err)
	}
	return s
}

// Each case is a line of options, and the part of the submission that it determines.
func TestOptions(t *testing.T) {
	files := func(s *submission) string {
		return fmt.Sprint(s.order.Streams.Input, " ", s.order.Streams.Output, " ", s.order.Streams.Error, " ", s.order.Streams.Append)
	}
	size := func(s *submission) string {
		z := s.spec.Size
		return fmt.Sprintf("%d cpus, %d tasks, %d MiB, %d gpus", z.CPUs, z.Tasks, z.Total(), z.GPUs)
	}
	name := func(s *submission) string { return s.order.Facts.Name + " in " + s.order.Place.Directory }
	limits := func(s *submission) string {
		return fmt.Sprint(time.Duration(s.spec.TimeLimit), " ", s.order.Limits.Warning)
	}
	labels := func(s *submission) string {
		return strings.Join([]string{s.spec.Account, s.spec.Comment, s.partition, s.spec.QOS, s.clusters}, ",")
	}
	when := func(s *submission) string {
		return fmt.Sprint(s.dependencies, " ", s.spec.KillOrphan, " ", s.spec.Requeue, " ", s.spec.Nice)
	}
	array := func(s *submission) string { return fmt.Sprint(s.array, " ", s.order.Array) }
	for _, test := range []struct {
		line string
		part func(*submission) string
		want string
	}{
		{"", name, "wrap in /data"},
		{"-J a -D b", name, "a in /data/b"},
		{"--job-name=a --chdir=/c/../d", name, "a in /c/../d"},
		{"", files, " slurm-%j.out  false"},
		{"-a 1-2", files, " slurm-%A_%a.out  false"},
		{"-i in -o out -e err --open-mode=append", files, "in out err true"},
		{"-i none -o none -e none --open-mode=t", files, "/dev/null /dev/null /dev/null false"},
		{"--open-mode=append --open-mode=truncate", files, " slurm-%j.out  false"},
		{"", size, "1 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"-c 4", size, "4 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"-n 3 -c 2 --mem=1G", size, "6 cpus, 3 tasks, 1024 MiB, 0 gpus"},
		{"-n 3 -c 2 --mem-per-cpu=100", size, "6 cpus, 3 tasks, 600 MiB, 0 gpus"},
		{"--ntasks-per-node=3", size, "3 cpus, 3 tasks, 0 MiB, 0 gpus"},
		{"--tasks-per-node=3 -n 2", size, "2 cpus, 2 tasks, 0 MiB, 0 gpus"},
		{"--mincpus=5 -c 2", size, "5 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"-G 2", size, "1 cpus, 1 tasks, 0 MiB, 2 gpus"},
		{"--gpus=2 --cpus-per-gpu=3 --mem-per-gpu=100", size, "6 cpus, 1 tasks, 200 MiB, 2 gpus"},
		{"--gpus-per-task=2 -n 3", size, "3 cpus, 3 tasks, 0 MiB, 6 gpus"},
		{"--gpus=2 --gpus=none", size, "1 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"--gpus-per-node=2 --gpus=0", size, "1 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"--gres=gpu", size, "1 cpus, 1 tasks, 0 MiB, 1 gpus"},
		{"--gres=none,gres:gpu:3,", size, "1 cpus, 1 tasks, 0 MiB, 3 gpus"},
		{"--mem=0", size, "1 cpus, 1 tasks, 0 MiB, 0 gpus"},
		{"", limits, "0s <nil>"},
		{"-t 90", limits, "1h30m0s <nil>"},
		{"--time=UNLIMITED", limits, "0s <nil>"},
		{"--signal=B:USR1@30 -t 1-0", limits, fmt.Sprint(24*time.Hour, " ", &notation.Warning{Signal: 10, Before: 30 * time.Second, Batch: true})},
		{"", labels, ",,,,"},
		{"-A a --comment=b -p c -q d -M e", labels, "a,b,c,d,e"},
		{"--account=a --partition=c --qos=d --cluster=e --clusters=f", labels, "a,,c,d,f"},
		{"", when, " false true 0"},
		{"-d afterok:3:4_[1-2],singleton --kill-on-invalid-dep=Yes", when, "afterok:3,afterok:4_1,afterok:4_2,singleton true true 0"},
		{"--dependency=7 --kill-on-invalid-dep=no --no-requeue", when, "afterany:7 false false 0"},
		{"--no-requeue --requeue --nice", when, " false true 100"},
		{"-d 0 --nice=-5", when, " false true -5"},
		{"", array, "<nil> "},
		{"-a 1-5:2%2", array, fmt.Sprint(&notation.Array{Text: "1-5:2%2", Tasks: []int{1, 3, 5}, AtOnce: 2}, " 1-5:2%2")},
		{"-a 1-5 --array=", array, "<nil> "},
		{"--tmp=2G", func(s *submission) string { return fmt.Sprint(s.diskMiB) }, "2048"},
		{"--propagate=CPU,rlimit_nofile", func(s *submission) string { return fmt.Sprint(s.rlimits) }, "[CPU NOFILE]"},
		{"--propagate=none", func(s *submission) string { return fmt.Sprint(s.rlimits) }, "[]"},
		{"--propagate=none --propagate", func(s *submission) string { return fmt.Sprint(s.rlimits) }, fmt.Sprint(step.Rlimits())},
		{"--export=NONE", func(s *submission) string { return fmt.Sprint(s.order.Environment, s.order.Facts.Export) }, "[SLURM_X=1]NONE"},
		{"--export=all", func(s *submission) string { return fmt.Sprint(s.order.Environment, s.order.Facts.Export) }, fmt.Sprint(ann.environ)},
		{"--parsable -Q -W --test-only", func(s *submission) string { return fmt.Sprint(s.parsable, s.quiet, s.wait, s.testOnly) }, "true true true true"},
	} {
		if got := test.part(wrapped(t, ann, test.line)); got != test.want {
			t.Errorf("sbatch %s: %q, want %q", test.line, got, test.want)
		}
	}
}

// Lists of jobs show the files with absolute paths, and as patterns.
func TestShownFiles(t *testing.T) {
	s := wrapped(t, ann, "-D /d -i in/%j -o /o/%A_%a -e err").spec
	if got, want := s.Input+" "+s.Output+" "+s.Error, "/d/in/%j /o/%A_%a /d/err"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// given returns a value with which an option is accepted, if its argument is checked.
func given(name string) string {
	switch values := map[string]string{
		"array": "1-2", "dependency": "singleton", "kill-on-invalid-dep": "yes", "open-mode": "append", "nodes": "1", "propagate": "CPU",
		"signal": "USR1", "begin": "now",
	}; {
	case values[name] != "":
		return values[name]
	case name == "job-name" || name == "account" || name == "partition" || name == "qos" || name == "comment":
		return "text"
	}
	return "1"
}

// An option has one of three results: it changes the submission, changes nothing, or is refused by name, and so has the
// variable with the same meaning. testdata/errors.txt has the names of all options.
func TestEveryOption(t *testing.T) {
	harmless := strings.Fields("acctg-freq contiguous delay-boot distribution gpu-bind gres-flags hint ignore-pbs mail-type mail-user " +
		"mcs-label mem-bind network no-kill ntasks-per-core ntasks-per-socket overcommit oversubscribe power prefer profile spread-job " +
		"switches threads-per-core time-min use-min-nodes verbose wait-all-nodes wckey")
	neutral := strings.Fields("begin nodes ntasks propagate requeue wrap") // here they confirm the default
	without := wrapped(t, ann, "")
	names := map[string]bool{}
	for _, o := range sbatchOptions.Options {
		for text := range strings.FieldsSeq(o.Names) {
			name, _, _ := strings.Cut(strings.TrimRight(text, "=?"), "|")
			if names[name] {
				t.Errorf("--%s is listed twice", name)
			}
			names[name] = true
			line := "--" + name
			if strings.HasSuffix(text, "=") {
				line += "=" + given(name)
			}
			s, err := submit([]string{line, "--wrap=true"}, ann, "")
			unsupported := (*notation.Unsupported)(nil)
			if err != nil {
				if !errors.As(err, &unsupported) || !strings.HasPrefix(err.Error(), line+" is not supported") {
					t.Errorf("sbatch %s: %v", line, err)
				}
			} else if want := slices.Contains(harmless, name) || slices.Contains(neutral, name); alike(without, s) != want {
				t.Errorf("sbatch %s changes nothing: %v, want %v", line, !want, want)
			}
			variables := strings.Fields(o.Variables)
			for _, variable := range variables {
				with := ann
				with.environ = append(slices.Clone(ann.environ), variable+"="+given(name))
				fromVariable, err := submit([]string{"--wrap=true"}, with, "")
				if (err == nil) != (s != nil) || err == nil && !alike(fromVariable, s) && strings.HasSuffix(text, "=") && name != "export" {
					t.Errorf("%s=%s: %+v, %v; with %s %+v", variable, given(name), fromVariable, err, line, s)
				}
			}
		}
	}
}

// alike reports whether two submissions have the same result, whatever their callers' environments.
func alike(a, b *submission) bool {
	x, y := *a, *b
	x.given, y.given, x.order.Environment, y.order.Environment = nil, nil, nil, nil
	return cmp.Equal(x, y, cmp.AllowUnexported(submission{}), cmp.Comparer(func(a, b *string) bool { return *a == *b }))
}

// Each case is an invalid argument, and sbatch's error.
func TestInvalidArguments(t *testing.T) {
	const submission = "Batch job submission failed: "
	for line, want := range map[string]string{
		"-c -1":                       `Invalid numeric value "-1" for --cpus-per-task.`,
		"-n 1.5":                      `Invalid numeric value "1.5" for --ntasks.`,
		"--gpus=-1":                   "--gpus=-1 is not supported on a Corral cluster: workers do not report the type of their GPUs",
		"--gpus=99999999999":          `Invalid numeric value "99999999999" for --gpus.`,
		"--gpus-per-node=a100:2":      "--gpus-per-node=a100:2 is not supported on a Corral cluster: workers do not report the type of their GPUs",
		"--gres=gpu:0,fpga":           "--gres=fpga is not supported on a Corral cluster: of generic resources, workers have GPUs only",
		"--gres=gpu:99999999999":      `Invalid numeric value "99999999999" for --gres.`,
		"--gres=gpu,gpu:a:1":          "--gres=gpu:a:1 is not supported on a Corral cluster: workers do not report the type of their GPUs",
		"--mem=x":                     "Invalid --mem specification",
		"--mem-per-cpu=1X":            "Invalid --mem-per-cpu specification",
		"--mem=1 --mem-per-cpu=1":     "fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
		"--tmp=x":                     "Invalid --tmp specification",
		"-t x":                        "Invalid --time specification",
		"--signal=x":                  "Invalid --signal specification",
		"--nice=x":                    "Invalid --nice specification",
		"--priority=x":                "Invalid --priority specification",
		"--kill-on-invalid-dep=maybe": "Invalid --kill-on-invalid-dep specification",
		"--open-mode=w":               "Invalid --open-mode specification",
		"--nodes=0":                   submission + "Node count specification invalid",
		"--nodes=2-1":                 "Maximum node count 1 is less than minimum node count 2",
		"--nodes=x":                   `"x" is not a valid node count`,
		"--nodes=1-":                  `"" is not a valid node count`,
		"--nodes=2":                   "--nodes=2 is not supported on a Corral cluster: a job runs within one worker",
		"--array=x":                   submission + "Invalid job array specification",
		"--dependency=x":              submission + "Job dependency problem",
		"--dependency=afterok:1?2":    "--dependency=afterok:1?2 is not supported on a Corral cluster: a job waits for all of its conditions",
		"--propagate=CPU,X":           "Bad rlimit name: X\n--propagate=CPU,X is not valid.",
		"--begin=tomorrow":            "--begin=tomorrow is not supported on a Corral cluster: a job starts as soon as a worker is free",
	} {
		if s, err := submit(append(strings.Fields(line), "--wrap=true"), ann, ""); err == nil || err.Error() != want {
			t.Errorf("sbatch %s: %+v, %v; want %s", line, s, err, want)
		}
	}
}
