package executor

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/ptrace"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// beginTraced is begin for a traced task.
func beginTraced(t *testing.T, script string) *begun {
	t.Helper()
	b := prepared(t, script, 0)
	b.job.Trace = corral.TraceIO
	b.run(t)
	return b
}

// A traced task leaves the trace in its directory, and its result contains the usage that only the trace reports. None
// of its processes survives, not even those outside its process group.
func TestTracedTask(t *testing.T) {
	t.Parallel()
	b := beginTraced(t, `setsid sleep 1000 & echo $! >&2; echo text | cat >copy; echo; exit 7`)
	r := <-b.ended
	if r.Exit != 7 || r.Reason != "exit status 7" || !strings.HasSuffix(string(r.MeasuredBy), string(execution.ByTrace)) {
		t.Errorf("result: %+v", r)
	}
	if r.WrittenBytes < int64(len("text\n\n123\n")) || r.MaxRSSKiB == 0 {
		t.Errorf("usage: %+v", r.Usage)
	}
	var tr *trace.Trace
	err := trace.Read(strings.NewReader(b.file(TraceFile)), TraceFile, func(found *trace.Trace) error {
		tr = found
		return nil
	})
	if err != nil || tr == nil {
		t.Fatalf("trace %v: %v", tr, err)
	}
	if tr.ID != "t.1" || tr.Run != "run:3" || tr.Exit != 7 || len(tr.Processes) != 4 || tr.Kinds[trace.Pipe].Written != 5 {
		t.Errorf("trace: %+v", tr)
	}
	left := slices.ContainsFunc(tr.Processes, func(p trace.Process) bool { return p.Signal == "SIGKILL" })
	if !left {
		t.Errorf("nothing was killed of %+v", tr.Processes)
	}
}

// A traced task is stopped and asked to end like any other.
func TestTracedTaskEnds(t *testing.T) {
	t.Parallel()
	b := beginTraced(t, "trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait")
	b.Stop(execution.Cancelled, "cancelled")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Signal != "SIGKILL" {
		t.Errorf("stopped: %+v, want cancelled by SIGKILL", r)
	}
	b.gone(t)
	b = beginTraced(t, "trap 'echo tidied; exit 0' TERM; echo; while :; do sleep 1 & wait; done")
	b.End(execution.Cancelled, "cancelled")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Exit != 0 || !strings.Contains(b.file("stdout"), "tidied") {
		t.Errorf("asked to end: %+v, printed %q", r, b.file("stdout"))
	}
	b = prepared(t, "exit 0", 0)
	b.job.Trace, b.job.Tasks[0].Argv = corral.TraceProcesses, []string{"./nowhere"}
	if r := b.Run(func() bool { return true }); r.Status != execution.Failed || !strings.Contains(r.Reason, "cannot be executed") {
		t.Errorf("a command that is not there: %+v", r)
	}
	if _, err := os.Stat(b.dir + "/" + TraceFile); err == nil {
		t.Error("it has a trace")
	}
}

// Where tracing is forbidden, as in some containers, a task runs untraced, and its result names the other source of its
// usage.
func TestTracingForbidden(t *testing.T) {
	t.Parallel()
	const inside = "CORRAL_TEST_INSIDE"
	if os.Getenv(inside) == "" { // the filter is permanent, so another process installs it
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	refusePtrace(t)
	if err := ptrace.Permitted(); corral.KindOf(err) != corral.Forbidden {
		t.Errorf("Permitted() = %v, want kind Forbidden", err)
	}
	b := prepared(t, "echo done", 0)
	b.job.Trace = corral.TraceIO
	if r := b.Run(func() bool { return true }); r.Status != execution.Done || strings.Contains(string(r.MeasuredBy), string(execution.ByTrace)) {
		t.Errorf("result: %+v", r)
	}
}

// refusePtrace makes the kernel refuse ptrace(2) to this process.
func refusePtrace(t *testing.T) {
	t.Helper()
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PTRACE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread() // the first call affects only this thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	head := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&head)))
	if errno != 0 {
		t.Fatal(errno)
	}
}
