package embedded_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/worker"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

func TestTaskFromInputsToOutputs(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.data(t, "in/a.txt", "alpha\n")
	b.data(t, "b.txt", "beta\n")
	b.data(t, "out/c.txt", "left by an attempt that was cut\n")
	res, dir := b.runOne(t, execution.Task{
		Index: 5, ID: "join", Attempt: 2, Estimate: time.Second,
		Argv:   []string{"sh", "-c", "cat in/a.txt - > out/c.txt; cat b.txt; echo warned >&2"},
		Inputs: []string{"in/a.txt", "b.txt"}, Outputs: []string{"out/c.txt", "log"},
		Stdin: "b.txt", Stdout: "log",
	})
	if res.Status != execution.Done || res.Exit != 0 || res.Index != 5 || res.Attempt != 2 || res.Worker != "tag/0" || res.Reason != "" {
		t.Errorf("result = %+v, want done", res)
	}
	if res.EndedAt.Before(res.StartedAt) || res.MaxRSSKiB <= 0 || res.UserCPU+res.SysCPU <= 0 {
		t.Errorf("result = %+v, want times and usage", res)
	}
	// The shell has read both files through cat, for which it waited; the bytes that the programs read for their own
	// purposes are added.
	by, reads, writes := source(t), int64(len("alpha\nbeta\nbeta\n")), int64(len("alpha\nbeta\nbeta\nwarned\n"))
	if by == execution.ByRusage { // the bytes are then unknown
		reads, writes = 0, 0
	}
	if !strings.HasPrefix(string(res.MeasuredBy), string(by)) || res.ReadBytes < reads || res.WrittenBytes != writes {
		t.Errorf("result = %+v, want the bytes that the shell and its children have read and written", res)
	}
	if got := read(t, b.dir, executor.DataDir, "out/c.txt"); got != "alpha\nbeta\n" {
		t.Errorf("out/c.txt = %q", got)
	}
	if got := read(t, b.dir, executor.DataDir, "log"); got != "beta\n" {
		t.Errorf("log = %q", got)
	}
	if got := read(t, dir, "stderr"); got != "warned\n" {
		t.Errorf("stderr = %q", got)
	}
	if link, err := os.Readlink(filepath.Join(dir, "in/a.txt")); err != nil || link != "../../../data/in/a.txt" {
		t.Errorf("input is linked to %q, %v; want a relative link", link, err)
	}
	var rec struct {
		Task string
		Host string
		execution.Result
	}
	if err := json.Unmarshal([]byte(read(t, dir, executor.RecordFile)), &rec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res, rec.Result); diff != "" || rec.Task != "join" {
		t.Errorf("record differs from the result (-result +record):\n%s", diff)
	}
}

// A failure is a task that fails on any machine.
type failure struct {
	name string
	task execution.Task
	want string // part of the reason
	exit int
}

func failures() []failure {
	return []failure{
		{"exit status", execution.Task{Argv: []string{"sh", "-c", "echo x > out; exit 3"}, Outputs: []string{"out"}}, "exit status 3", 3},
		{"signal", execution.Task{Argv: []string{"sh", "-c", "kill -SEGV $$"}}, "SIGSEGV", -1},
		{"missing output", execution.Task{Argv: []string{"sh", "-c", "echo x > out"}, Outputs: []string{"out", "gone.txt"}}, `output "gone.txt" is missing`, 0},
		{"linked output", execution.Task{Argv: []string{"ln", "-s", "stdout", "out"}, Outputs: []string{"out"}}, `output "out" is a symbolic link`, 0},
		{"pipe for output", execution.Task{Argv: []string{"mkfifo", "out"}, Outputs: []string{"out"}}, `output "out" is neither a file nor a directory`, 0},
		{"missing input", execution.Task{Argv: []string{"true"}, Inputs: []string{"nowhere.txt"}}, `input "nowhere.txt" is missing`, -1},
		{"missing stdin", execution.Task{Argv: []string{"true"}, Stdin: "nothing"}, `standard input "nothing"`, -1},
		{"no such command", execution.Task{Argv: []string{"corral-no-such-command"}}, `command "corral-no-such-command" is not in the `, -1},
		{"not executable", execution.Task{Argv: []string{"./in.txt"}, Inputs: []string{"in.txt"}}, `command "./in.txt" cannot be executed: permission denied`, -1},
		{"no command", execution.Task{}, "no command", -1},
		{"output outside", execution.Task{Argv: []string{"true"}, Outputs: []string{"../../evil"}}, "leads out of", -1},
		{"input outside", execution.Task{Argv: []string{"true"}, Inputs: []string{"/etc/passwd"}}, "leads out of", -1},
		{"directory outside", execution.Task{ID: "../x", Argv: []string{"true"}}, "cannot be the name of a directory", -1},
		{"input is output stream", execution.Task{Argv: []string{"true"}, Inputs: []string{"in.txt"}, Stdout: "in.txt"}, "both input and output stream", -1},
		{"timeout", execution.Task{Argv: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond}, "timed out after 50ms", -1},
		{"timeout that is ignored politely", execution.Task{Argv: []string{"sh", "-c", "trap 'echo x > out; exit 0' TERM; while :; do sleep 0.01; done"}, Outputs: []string{"out"}, Timeout: 5 * time.Second}, "timed out", 0},
	}
}

func TestTaskThatFails(t *testing.T) {
	t.Parallel()
	for _, tt := range failures() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, dispatch.Config{}, nil)
			b.data(t, "in.txt", "not a program\n")
			tt.task.Attempt, tt.task.Estimate = 1, time.Second
			if tt.task.ID == "" {
				tt.task.ID = "t"
			}
			res, dir := b.runOne(t, tt.task)
			for tt.exit == 0 && res.Signal == "SIGKILL" { // a busy machine did not let the task end in time
				b, tt.task.Timeout = newBed(t, dispatch.Config{}, nil), 2*tt.task.Timeout
				res, dir = b.runOne(t, tt.task)
			}
			if res.Status != execution.Failed || res.Exit != tt.exit || !strings.Contains(res.Reason, tt.want) {
				t.Errorf("result = %+v, want failure with %q and exit %d", res, tt.want, tt.exit)
			}
			absent(t, b.dir, executor.DataDir, "out")
			if tt.exit >= 0 {
				read(t, dir, executor.RecordFile)
			}
		})
	}
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	var res execution.Result
	var dir string
	for timeout := 2 * time.Second; ; timeout *= 2 { // sh needs time for its trap and its child
		res, dir = newBed(t, dispatch.Config{}, nil).runOne(t, execution.Task{
			ID: "t", Attempt: 1, Estimate: time.Second, Timeout: timeout,
			Argv: []string{"sh", "-c", "trap '' TERM; sleep 161 & echo $! > child.new; mv child.new child; wait; wait; sleep 162"},
		})
		if _, err := os.Stat(filepath.Join(dir, "child")); err == nil || timeout > patience {
			break
		}
	}
	if res.Status != execution.Failed || res.Signal != "SIGKILL" {
		t.Errorf("result = %+v, want failure by SIGKILL", res)
	}
	if took := res.EndedAt.Sub(res.StartedAt); took < 2*time.Second {
		t.Errorf("killed after %v, before the grace was over", took)
	}
	awaitDeath(t, strings.TrimSpace(read(t, dir, "child")))
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	res, dir := b.runOne(t, execution.Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"sh", "-c", "sleep 63 & echo $! > child"}})
	if res.Status != execution.Done {
		t.Errorf("result = %+v, want done", res)
	}
	awaitDeath(t, strings.TrimSpace(read(t, dir, "child")))
}

// awaitDeath waits until a process is gone, or is a zombie that its new parent has not reaped.
func awaitDeath(t *testing.T, pid string) {
	t.Helper()
	await(t, "death of process "+pid, func() bool {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

func TestEnvironmentIsCleanAndSmall(t *testing.T) {
	t.Setenv("POOL_TEST_LEAK", "x")
	t.Setenv("CORRAL_JOB_DIR", "/jobs/tag") // marks leftover processes of a job for the batch system's sweep
	t.Setenv("CORRAL_JOB_TAG", "tag")
	scratch := t.TempDir()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Scratch = scratch })
	_, dir := b.runOne(t, execution.Task{
		ID: "t", Attempt: 4, Estimate: time.Second, Argv: []string{"env"},
		Env: []string{"MINE=1", "LANG=xx", "CORRAL_TASK=forged"},
	})
	var names []string
	got := map[string]string{}
	for line := range strings.Lines(read(t, dir, "stdout")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		got[name] = value
	}
	want := map[string]string{
		"CORRAL_RUN": "1", "CORRAL_TASK": "t", "CORRAL_ATTEMPT": "4", "CORRAL_CPUS": "1", "MINE": "1", "LANG": "xx", "TMPDIR": scratch + "/1",
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "CORRAL_JOB_DIR": "/jobs/tag", "CORRAL_JOB_TAG": "tag",
	}
	for _, name := range []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
		"GOMAXPROCS", "JULIA_NUM_THREADS", "NUMBA_NUM_THREADS", "PYTHON_CPU_COUNT", "RAYON_NUM_THREADS", "ROOT_MAX_THREADS"} {
		want[name] = "1"
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	for _, name := range names {
		if _, ok := want[name]; !ok && name != "USER" && name != "PWD" {
			t.Errorf("%s is in the environment", name)
		}
	}
	if strings.Contains(read(t, dir, "stdout"), testToken) {
		t.Error("the token is in the environment")
	}
}

func TestDirectoryOfADeadInstanceIsRemade(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	if err := os.MkdirAll(filepath.Join(b.dir, executor.TasksDir, "t.1", "rubbish"), 0o777); err != nil {
		t.Fatal(err)
	}
	res, dir := b.runOne(t, execution.Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"ls"}})
	if got := read(t, dir, "stdout"); res.Status != execution.Done || strings.Contains(got, "rubbish") {
		t.Errorf("result = %+v, directory has %q", res, got)
	}
}

func TestOutputDirectoryReplacesAnOldOne(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.data(t, "d/old", "x")
	res, _ := b.runOne(t, execution.Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"sh", "-c", "mkdir d; echo y > d/new"}, Outputs: []string{"d"}})
	if res.Status != execution.Done || read(t, b.dir, executor.DataDir, "d/new") != "y\n" {
		t.Errorf("result = %+v", res)
	}
	absent(t, b.dir, executor.DataDir, "d/old")
}

// The files that a worker writes into the task's directory do not follow the links to its inputs.
func TestRecordDoesNotOverwriteAnInput(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, nil)
	b.data(t, executor.RecordFile, "precious\n")
	b.data(t, "stdout", "precious\n")
	b.runOne(t, execution.Task{ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"true"}, Inputs: []string{executor.RecordFile, "stdout"}})
	for _, name := range []string{executor.RecordFile, "stdout"} {
		if got := read(t, b.dir, executor.DataDir, name); got != "precious\n" {
			t.Errorf("%s = %q after the task", name, got)
		}
	}
}

// source returns the source of tasks' usage on this machine. Since Linux 6.18 an ordinary user may not read
// /proc/PID/io of a process that has ended; the bytes of an untraced task are then unknown.
func source(t *testing.T) execution.Source {
	t.Helper()
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()  // its status does not matter
	const byPID = 1 // P_PID of waitid
	if _, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(c.Process.Pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0); err != 0 {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.Process.Pid)); err != nil {
		return execution.ByRusage
	}
	return execution.ByRusageProc
}

// TestTaskInAGroup: if the worker can create control groups, a long task runs in a group, which is removed with the
// task. Otherwise the task runs without a group. The record names the source of each measurement.
func TestTaskInAGroup(t *testing.T) {
	t.Parallel()
	x, err := executor.New("tag/0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	script, want := "echo none", string(source(t))
	if parent := cgroup.Open("/"); parent != nil {
		x.MeasureBy(parent)
		script = "until grep -q corral- /proc/self/cgroup; do sleep 0.01; done; grep corral- /proc/self/cgroup"
		want += fmt.Sprintf("+cgroup%d", parent.Version())
	}
	j := execution.Job{Run: 1, Seq: 1, Dir: runDir(t), CPUs: 1, Tasks: []execution.Task{{ID: "t", Attempt: 1,
		Estimate: time.Minute, Timeout: time.Minute, Stdout: "groups", Outputs: []string{"groups"},
		Argv: []string{"sh", "-c", script}}}}
	res := x.Begin(&j, &j.Tasks[0]).Run(func() bool { return true })
	if res.Status != execution.Done || string(res.MeasuredBy) != want {
		t.Errorf("%+v, want it to be measured by %s", res, want)
	}
	for line := range strings.Lines(read(t, j.Dir, executor.DataDir, "groups")) {
		group := filepath.Base(strings.TrimSpace(line))
		if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + group); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
	}
}

// A worker whose lease expires while its task ends must not publish anything.
func TestStaleWorkerPublishesNothing(t *testing.T) {
	t.Parallel()
	x, err := executor.New("tag/0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	j := execution.Job{Run: 1, Seq: 1, Dir: runDir(t), CPUs: 1, Tasks: []execution.Task{{
		ID: "t", Attempt: 1, Estimate: time.Second, Argv: []string{"touch", "a", "b"}, Outputs: []string{"a", "b"},
	}}}
	checks := 0
	res := x.Begin(&j, &j.Tasks[0]).Run(func() bool { checks++; return checks == 1 })
	if res.Status != execution.Cut || res.Exit != 0 || !strings.Contains(res.Reason, "lease") {
		t.Errorf("result = %+v, want cut", res)
	}
	if _, err := os.Stat(filepath.Join(j.Dir, executor.DataDir, "a")); err != nil {
		t.Errorf("the output published within the lease: %v", err)
	}
	absent(t, j.Dir, executor.DataDir, "b")
}
