package step

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	o.Limits.Time, o.Limits.Warning = time.Hour, &notation.Warning{Signal: int(syscall.SIGUSR2), Before: 2 * time.Hour, Batch: true}
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
		o.Limits.Time = limit
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
