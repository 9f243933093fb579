package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// TestMain lets the test's program be a step, as the pilot does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		status, err := Run()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExitUnable)
		}
		End(status)
	}
	os.Exit(m.Run())
}

// A ran is the result of a step.
type ran struct {
	dir   string // the job's directory
	words string // the step's own messages, on either stream
	state *os.ProcessState
}

// file reads a file of the job.
func (r ran) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// order returns an order for a script, which tests modify.
func order(t *testing.T, script string) Order {
	dir := t.TempDir()
	return Order{
		Script: Script{Text: "#!/bin/sh\n" + script}, Environment: []string{"MINE=a b", "PATH=/usr/bin:/bin"},
		Place:   Place{Directory: dir, Mark: MarkOf(dir), Submitted: dir, Host: "head"},
		Streams: Streams{Output: "slurm-%j.out"}, Limits: Limits{Umask: 0o022}, Base: 7_000_000,
		Facts:  Facts{Name: "n", User: "ann", Cluster: "default", Partition: "default", Size: notation.Size{Tasks: 1, CPUs: 2}},
		Folder: "/shim",
	}
}

// run runs a step as task 3 of its run, with some of a worker's variables.
func run(t *testing.T, o Order, env ...string) ran {
	t.Helper()
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	note := filepath.Join(work, "note")
	if err := os.WriteFile(note, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], Command)
	cmd.Dir = work
	cmd.Env = append([]string{"CORRAL_NOTE=" + note, "CORRAL_TASK=3", "CORRAL_ATTEMPT=1", "WORKERS=own", "TMPDIR=/tmp"}, env...)
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_ = cmd.Run()
	return ran{o.Place.Directory, words.String(), cmd.ProcessState}
}

func TestJobEnvironmentIsSlurms(t *testing.T) {
	t.Parallel()
	o := order(t, `printf '%s\n' "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_CPUS_ON_NODE $MINE ${WORKERS-none} $PATH $1"; umask; pwd; ulimit -n`)
	o.Script.Args = []string{"one two"}
	o.Limits.Umask, o.Limits.Soft = 0o027, map[string]uint64{"NOFILE": 77}
	r := run(t, o)
	dir, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "7000003 n 2 a b none /shim:/usr/bin:/bin one two\n0027\n" + dir + "\n77\n"
	if got := r.file(t, "slurm-7000003.out"); got != want || r.state.ExitCode() != 0 {
		t.Errorf("%v, %s: got %q, want %q", r.state, r.words, got, want)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "slurm-7000003.out")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its output: %v, %v", info.Mode(), err)
	}
}

func TestTaskOfAnArray(t *testing.T) {
	t.Parallel()
	o := order(t, `echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MAX; echo oops >&2`)
	o.Array, o.Streams = "2-8:3", Streams{Output: "out-%A_%a", Error: "err-%a"}
	r := run(t, o, "CORRAL_ELEMENT=1")
	if got := r.file(t, "out-7000002_5"); got != "7000002 5 3 8\n" {
		t.Errorf("%s: %q", r.words, got)
	}
	if got := r.file(t, "err-5"); got != "oops\n" {
		t.Errorf("error: %q", got)
	}
}

// A step ends with the same status or signal as its script.
func TestEndOfAStep(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"exit 7": "exit status 7", "kill -9 $$": "signal: killed", "kill -TERM $$": "signal: terminated",
		"kill -SEGV $$": "signal: segmentation fault", "no-such-command": "exit status 127",
	} {
		if got := run(t, order(t, script)).state.String(); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// A script's leftover processes are killed, not waited for, regardless of their sessions and process groups.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	o := order(t, `setsid sh -c 'echo $$ >a; exec sleep 1000' & (sleep 1000 & echo $! >b) ; while ! test -s a; do :; done`)
	r := run(t, o)
	if r.state.ExitCode() != 0 {
		t.Fatalf("%v: %s", r.state, r.words)
	}
	for _, name := range []string{"a", "b"} {
		pid, err := strconv.Atoi(strings.TrimSpace(r.file(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d of %s: %v", pid, name, err)
		}
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	o := order(t, `trap 'echo warned; exit 3' USR2; while :; do sleep 0.01; done`)
	o.Limits.Time, o.Limits.Warning = corral.Seconds(time.Hour), &notation.Warning{Signal: int(syscall.SIGUSR2), Before: 2 * time.Hour, Batch: true}
	o.Script.Text = strings.Replace(o.Script.Text, "#!/bin/sh\n", "#!/bin/sh\n: > ready\n", 1)
	r := run(t, o)
	if r.state.ExitCode() != 3 && r.state.String() != "signal: user defined signal 2" { // the signal may come before the trap is set
		t.Errorf("%v: %s", r.state, r.words)
	}
}

// When a job's time limit is reached or the job is cancelled, the worker asks its process group to end; the job's
// output contains the reason.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()
	for limit, says := range map[time.Duration]string{
		0: `\d ON \S+ CANCELLED AT \S{19} \*\*\*`, time.Hour: `\d ON \S+ CANCELLED AT \S{19} \*\*\*`,
		time.Millisecond: `\d ON \S+ CANCELLED AT \S{19} DUE TO TIME LIMIT \*\*\*`,
	} {
		o := order(t, `trap 'while ! grep -q CANCELLED slurm-7000003.out; do :; done; exit 4' TERM; kill -TERM 0; while :; do sleep 0.01; done`)
		o.Limits.Time = corral.Seconds(limit)
		r := run(t, o)
		got := r.file(t, "slurm-7000003.out")
		if r.state.ExitCode() != 4 || !regexp.MustCompile(says+`\n$`).MatchString(got) {
			t.Errorf("limit %s: %v: %q", limit, r.state, got)
		}
	}
}

// A refused job does not begin.
func TestRefused(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Order){
		"does not see the job's directory /no/such":  func(o *Order) { o.Place.Directory = "/no/such" },
		"is not the directory that it is on head":    func(o *Order) { o.Place.Mark++ },
		"the job's standard output: open /no/such/x": func(o *Order) { o.Streams.Output = "/no/such/x" },
		"script cannot be executed":                  func(o *Order) { o.Script.Text = "#!/no/such\n" },
		"does not begin with #!":                     func(o *Order) { o.Script.Text = "echo" },
	} {
		o := order(t, "touch ran")
		change(&o)
		r := run(t, o)
		if r.state.ExitCode() != ExitUnable || !strings.Contains(r.words, says) {
			t.Errorf("%s: %v, %q", says, r.state, r.words)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "ran")); err == nil {
			t.Errorf("%s: it ran", says)
		}
	}
}

// A probe always succeeds, and begins nothing. Its output says whether it sees the job's directory.
func TestProbe(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Order){
		"":                   func(*Order) {},
		Blind + "worker ":    func(o *Order) { o.Place.Directory = "/no/such" },
		Blind + "on worker ": func(o *Order) { o.Place.Mark++ },
	} {
		o := order(t, "touch ran")
		o.Probe = true
		change(&o)
		r := run(t, o)
		if !r.state.Success() || !strings.HasPrefix(r.words, says) || (says == "") != (r.words == "") {
			t.Errorf("%s: %v, %q", says, r.state, r.words)
		}
		if left, err := os.ReadDir(r.dir); err == nil && len(left) > 0 {
			t.Errorf("%s: it left %v", says, left)
		}
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, add := range []bool{false, true} {
		o := order(t, "echo new")
		o.Streams = Streams{Output: "o", Append: add}
		if err := os.WriteFile(filepath.Join(o.Place.Directory, "o"), []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{false: "new\n", true: "old\nnew\n"}[add]
		if got := run(t, o).file(t, "o"); got != want {
			t.Errorf("append %v: %q, want %q", add, got, want)
		}
	}
}

func TestSoftLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	got := SoftLimits(text, Rlimits())
	if len(got) != len(resources) {
		t.Errorf("of %d resources these are known: %v", len(resources), got)
	}
	var stack syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &stack); err != nil || stack.Cur != got["STACK"] {
		t.Errorf("stack: %d, %v, want %d", got["STACK"], err, stack.Cur)
	}
}

// The job's environment is taken from the order; the worker's variables are used only where the order sets none.
func TestEnviron(t *testing.T) {
	t.Parallel()
	o := order(t, "")
	o.Environment = []string{"TMPDIR=/mine", "CUDA_VISIBLE_DEVICES=7", "SLURM_JOB_ID=1",
		"CORRAL_ENTRY=/other", "CORRAL_NOTE=/other", "CORRAL_SUBMIT_DIR=/other"}
	got := o.environ(instance{id: 5}, []string{"TMPDIR=/theirs", "CUDA_VISIBLE_DEVICES=0", "HOME=/h", "X=1"}, time.Unix(0, 0))
	for _, kv := range []string{"TMPDIR=/mine", "CUDA_VISIBLE_DEVICES=0", "HOME=/h", "SLURM_JOB_ID=5", "PATH=/shim"} {
		if !slices.Contains(got, kv) {
			t.Errorf("no %s in %q", kv, got)
		}
	}
	if slices.Contains(got, "X=1") {
		t.Errorf("the worker's own variable is in %q", got)
	}
	if slices.ContainsFunc(got, func(kv string) bool { return strings.HasSuffix(kv, "=/other") }) {
		t.Errorf("what another task was told is in %q", got)
	}
}

// A script, its arguments, its variables and file names may contain any bytes.
func TestOrderKeepsBytes(t *testing.T) {
	t.Parallel()
	o := order(t, "printf 'caf\xe9'\n")
	o.Script.Args, o.Environment = []string{"\xff", "é"}, []string{"LATIN=caf\xe9"}
	o.Place.Directory, o.Streams.Output = "/d\xff é", "caf\xe9-%j"
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(b)
	if diff := cmp.Diff(o, got); err != nil || diff != "" {
		t.Errorf("it is read as another order, %v (-written +read):\n%s", err, diff)
	}
	if !utf8.Valid(b) {
		t.Errorf("%q is not UTF-8", b)
	}
}

// Any file content is either an order or refused.
func FuzzOrder(f *testing.F) {
	b, _ := json.Marshal(Order{Script: Script{Text: "#!/bin/sh\n"}, Place: Place{Directory: "/"}, Streams: Streams{Output: "o"}, Facts: Facts{Size: notation.Size{Tasks: 1, CPUs: 1}}})
	f.Add(b)
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decode(b)
		if err != nil {
			return
		}
		if _, err := o.Encode(); err != nil && len(b) < MaxOrder/8 {
			t.Errorf("%q: %v", b, err)
		}
	})
}

// The variables that Slurm sets for a job, by the job's options.
func TestSlurmsVariables(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	array := instance{id: 9, arrayID: 7, tasks: []int{2, 5, 9}, element: 2, attempt: 1, host: "n1"}
	for name, test := range map[string]struct {
		change func(*Order)
		job    instance
		want   string // the values of variables that the first job does not have, or has with other values
	}{
		"plain":   {func(*Order) {}, instance{id: 3, attempt: 1, host: "n1"}, ""},
		"cpus":    {func(o *Order) { o.Facts.CPUsPerTask = 4 }, instance{id: 3, host: "n1"}, "SLURM_CPUS_PER_TASK=4"},
		"gpus":    {func(o *Order) { o.Facts.GPUs = 2 }, instance{id: 3, host: "n1"}, "SLURM_GPUS_ON_NODE=2"},
		"memory":  {func(o *Order) { o.Facts.MemoryMiB = 9 }, instance{id: 3, host: "n1"}, "SLURM_MEM_PER_NODE=9"},
		"per cpu": {func(o *Order) { o.Facts.MemoryMiB, o.Facts.MemoryEach = 9, true }, instance{id: 3, host: "n1"}, "SLURM_MEM_PER_CPU=9"},
		"account": {func(o *Order) { o.Facts.Account = "lab" }, instance{id: 3, host: "n1"}, "SLURM_JOB_ACCOUNT=lab"},
		"export":  {func(o *Order) { o.Facts.Export = "NONE" }, instance{id: 3, host: "n1"}, "SLURM_EXPORT_ENV=NONE"},
		"limit":   {func(o *Order) { o.Limits.Time = corral.Seconds(time.Minute) }, instance{id: 3, host: "n1"}, "SLURM_JOB_END_TIME=1060"},
		"again":   {func(*Order) {}, instance{id: 3, attempt: 3, host: "n1"}, "SLURM_RESTART_COUNT=2"},
		"name":    {func(o *Order) { o.Facts.Name = "a b" }, instance{id: 3, host: "n1"}, "SLURM_JOB_NAME=a b"},
		"tasks": {
			func(o *Order) { o.Facts.Tasks, o.Facts.CPUs = 2, 6 }, instance{id: 3, host: "n1"},
			"SLURM_CPUS_ON_NODE=6 SLURM_JOB_CPUS_PER_NODE=6 SLURM_NPROCS=2 SLURM_NTASKS=2 SLURM_TASKS_PER_NODE=2",
		},
		"array": {
			func(*Order) {}, array, "SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_MAX=9 " +
				"SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_STEP=3 SLURM_JOBID=9 SLURM_JOB_ID=9",
		},
		"array of one": {
			func(*Order) {}, instance{id: 7, arrayID: 7, tasks: []int{4}, host: "n1"},
			"SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_COUNT=1 SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_MAX=4 SLURM_ARRAY_TASK_MIN=4 " +
				"SLURM_ARRAY_TASK_STEP=1 SLURM_JOBID=7 SLURM_JOB_ID=7",
		},
	} {
		o := order(t, "")
		plain := o.told(instance{id: 3, attempt: 1, host: "n1"}, began)
		test.change(&o)
		got := o.told(test.job, began)
		var different []string
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if value, ok := plain[name]; !ok || value != got[name] {
				different = append(different, name+"="+got[name])
			}
		}
		if strings.Join(different, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, different, test.want)
		}
	}
}

// The names of a job's files, by what % stands for.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	o := order(t, "")
	single := o.names(instance{id: 12, arrayID: 12, host: "n1"})
	element := o.names(instance{id: 14, arrayID: 12, tasks: []int{3, 5, 9}, element: 2, host: "n1"})
	const pattern = "%j %A %a %x %u %N %n %t %s %J %4j %%"
	if got, want := notation.Expand(pattern, single), "12 12 4294967294 n ann n1 0 0 batch 12 0012 %"; got != want {
		t.Errorf("a job: %q, want %q", got, want)
	}
	if got, want := notation.Expand(pattern, element), "14 12 9 n ann n1 0 0 batch 14 0014 %"; got != want {
		t.Errorf("an element: %q, want %q", got, want)
	}
}

// A worker's variables name the job and its element.
func TestInstance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		array, element, task string
		want                 string // id, array's id and number; or the error
	}{
		{"", "", "3", "7000003 7000003 -"},
		{"2-8:3", "1", "4", "7000004 7000003 5"},
		{"2-8:3", "3", "4", "the array has 3 tasks, but this is number 3"},
		{"2-8:3", "-1", "4", "the array has 3 tasks, but this is number -1"},
		{"x", "0", "4", "reading the job's array: Invalid job array specification"},
		{"", "", "x", `the job's worker has set CORRAL_TASK="x", which is not a number`},
		{"", "", "", `the job's worker has set CORRAL_TASK="", which is not a number`},
	} {
		o := order(t, "")
		o.Array = test.array
		i, err := instanceOf(o, func(name string) string {
			return map[string]string{"CORRAL_TASK": test.task, "CORRAL_ATTEMPT": "1", "CORRAL_ELEMENT": test.element}[name]
		})
		number := "-"
		if err == nil && i.tasks != nil {
			number = i.number()
		}
		got := fmt.Sprint(i.id, " ", i.arrayID, " ", number)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// Soft limits are read for the requested resources; a line that is not a limit is passed over.
func TestSomeSoftLimits(t *testing.T) {
	t.Parallel()
	const text = `Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max file size             1048576              unlimited            bytes
Max open files            1024                 4096                 files
Max nice priority         0                    0
Max stack size            many                 unlimited            bytes
Max processes`
	got := SoftLimits([]byte(text), []string{"CPU", "NOFILE", "STACK", "NPROC", "NONE"})
	if diff := cmp.Diff(map[string]uint64{"CPU": math.MaxUint64, "NOFILE": 1024}, got); diff != "" {
		t.Error(diff)
	}
}

// An order that sbatch cannot have written is refused.
func TestRefusedOrders(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Order){
		"the job's directory contains a NUL":            func(o *Order) { o.Place.Directory = "/a\x00b" },
		"the job's input contains a NUL":                func(o *Order) { o.Streams.Input = "\x00" },
		"the job's script does not begin with #!":       func(o *Order) { o.Script.Text = "" },
		`the job's directory "a" is not absolute`:       func(o *Order) { o.Place.Directory = "a" },
		"the job has no file for its output":            func(o *Order) { o.Streams.Output = "" },
		"the job has 1 tasks on 0 cpus":                 func(o *Order) { o.Facts.CPUs = 0 },
		"the job has 0 tasks on 2 cpus":                 func(o *Order) { o.Facts.Tasks = 0 },
		"but at most 1 MiB are allowed":                 func(o *Order) { o.Script.Text = "#!" + strings.Repeat("x", MaxOrder) },
		"together, but at most 1 MiB are allowed":       func(o *Order) { o.Environment = []string{"A=" + strings.Repeat("\xff", MaxOrder/2)} },
		"reading the job's order: unexpected end of JS": nil,
	} {
		o := order(t, "")
		if change != nil {
			change(&o)
		}
		b, err := o.Encode()
		if change == nil {
			b = nil
		}
		if err == nil {
			_, err = decode(b)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
