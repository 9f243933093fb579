package ptrace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// fileOf returns the traffic of a file.
func fileOf(t *testing.T, tr *trace.Trace, path string) trace.File {
	t.Helper()
	for _, f := range tr.Files {
		if f.Path == path {
			return f
		}
	}
	t.Fatalf("no file %s in %+v", path, tr.Files)
	return trace.File{}
}

// Every byte is attributed to its file and to its kind of descriptor, with or without a filter (F60).
func TestBytesByFile(t *testing.T) {
	t.Parallel()
	const size = 1_234_567
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, unfiltered := range []bool{false, true} {
		printed, err := os.Create(filepath.Join(dir, "printed"))
		if err != nil {
			t.Fatal(err)
		}
		c := self("copy", in, out, "10000")
		c.Mode, c.Unfiltered, c.Attr.Files[1] = trace.IO, unfiltered, printed.Fd()
		tr := well(t, c)
		if by := map[bool]string{false: "seccomp", true: "syscall"}[unfiltered]; tr.Overhead.By != by {
			t.Errorf("stopped by %s, want %s", tr.Overhead.By, by)
		}
		got := fileOf(t, &tr, in)
		got.Reads = 0 // depends on the reader
		if diff := cmp.Diff(trace.File{Path: in, Kind: trace.Regular, Sum: trace.Sum{Read: size}, Opens: 1, Size: size}, got); diff != "" {
			t.Errorf("what was read, -want +got:\n%s", diff)
		}
		got = fileOf(t, &tr, out)
		want := trace.File{Path: out, Kind: trace.Regular, Sum: trace.Sum{Written: size, Writes: 124}, Opens: 1, Size: size}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what was written, -want +got:\n%s", diff)
		}
		got = fileOf(t, &tr, "stdout")
		if got.Kind != trace.Std || got.Written != int64(len("1234567\n")) || got.Target != printed.Name() {
			t.Errorf("stdout: %+v", got)
		}
		for _, k := range []trace.Kind{trace.Pipe, trace.Socket} {
			if s := tr.Kinds[k]; s.Read != size || s.Written != size {
				t.Errorf("%s: %+v, want %d bytes in and out", k, s, size)
			}
		}
		if sum := tr.Bytes(); sum.Written != tr.Processes[0].WrittenBytes {
			t.Errorf("%d bytes were written, the kernel counts %d", sum.Written, tr.Processes[0].WrittenBytes)
		}
		if d, ok := tr.Distinct(); !ok || d != tr.Bytes().Read {
			t.Errorf("Distinct() = %d, %v, want %d: nothing was read twice", d, ok, tr.Bytes().Read)
		}
	}
}

// Bytes that other calls move are also attributed, or the calls are counted (F61).
func TestOtherCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	c := self("otherways", in, out)
	c.Mode = trace.IO
	tr := well(t, c)
	// Read by sendfile, copy_file_range, splice, preadv2 and pread; written by the other side of these calls except
	// preadv2, and by pwritev2.
	want := trace.File{Path: in, Kind: trace.Regular, Sum: trace.Sum{Read: 5000, Reads: 5}, Opens: 1, Mapped: 1000, Size: 1000}
	if diff := cmp.Diff(want, fileOf(t, &tr, in)); diff != "" {
		t.Errorf("what was read, -want +got:\n%s", diff)
	}
	if got := fileOf(t, &tr, out); got.Written != 5000 || got.Writes != 5 {
		t.Errorf("what was written: %+v", got)
	}
	if s := tr.Kinds[trace.Socket]; s != (trace.Sum{Read: 100, Written: 100, Reads: 1, Writes: 1}) {
		t.Errorf("messages: %+v", s)
	}
	missed := map[string]int64{}
	for _, m := range tr.Missed {
		missed[m.Call] = m.Calls
	}
	for _, call := range []string{"mmap", "io_uring_setup", "process_vm_readv", "ioctl FICLONE"} {
		if n := missed[call]; n != 1 && (call != "mmap" || n < 1) { // its libraries are mapped too
			t.Errorf("%s was counted %d times: %v", call, missed[call], missed)
		}
	}
	if p := tr.Kinds[trace.Pipe]; p.Read != 2000 || p.Written != 2000 { // splice, vmsplice
		t.Errorf("pipe: %+v", p)
	}
}

// All processes are listed, each once: children, the children of a shell that executes no program, processes whose
// parents have ended, and processes that replace themselves (F62).
func TestTree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         int // processes
	}{
		{"one", "exit 0", 1},
		{"exec", "exec /bin/true", 1},
		{"children", "i=0; while [ $i -lt 200 ]; do /bin/true & i=$((i+1)); done; wait", 201},
		{"no program", "(exit 0) & (exit 0) & wait", 3},
		{"pipe", "echo x | cat | cat >/dev/null", 4},
		{"daemon", "(setsid sh -c '(sleep 0.05; true) & exit 0' &) ; exit 0", 5},
		{"killed", "sleep 1000 & kill -9 $!; wait; exit 0", 2},
	} {
		for _, mode := range []trace.Mode{trace.Processes, trace.IO} {
			command := shell(c.script)
			command.Mode = mode
			tr := well(t, command)
			if len(tr.Processes) != c.want {
				t.Errorf("%s, %s: %d processes, want %d: %+v", c.name, mode, len(tr.Processes), c.want, tr.Processes)
			}
			known := map[int]bool{0: true}
			for _, p := range tr.Processes {
				if !known[p.Parent] {
					t.Errorf("%s: process %d has a parent that is not there: %d", c.name, p.ID, p.Parent)
				}
				known[p.ID] = true
			}
		}
	}
}

// A process stays the same when a thread other than its first executes a program, and its threads are counted.
func TestThreads(t *testing.T) {
	t.Parallel()
	for _, mode := range []trace.Mode{trace.Processes, trace.IO} {
		c := self("foreignexec", "/bin/sh", "-c", "exit 0")
		c.Mode = mode
		tr := well(t, c)
		if len(tr.Processes) != 1 || tr.Processes[0].Execs != 2 || tr.Processes[0].PeakBytes == 0 {
			t.Errorf("exec by a thread: %+v", tr.Processes)
		}
		c = self("threads")
		c.Mode = mode
		if tr = well(t, c); len(tr.Processes) != 1 || tr.Processes[0].Threads < 10 {
			t.Errorf("threads: %+v", tr.Processes)
		}
	}
}

// A command ends as it would without a tracer.
func TestEnds(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]syscall.WaitStatus{
		"exit 0": 0, "exit 7": 7 << 8, "kill -TERM $$": 15, "kill -KILL $$": 9, "trap 'exit 3' USR1; kill -USR1 $$; exit 4": 3 << 8,
	} {
		for _, mode := range []trace.Mode{trace.Processes, trace.IO} {
			c := shell(script)
			c.Mode = mode
			if r := traced(t, c); r.Status != want {
				t.Errorf("%s (%s): status %#x, want %#x", script, mode, uint32(r.Status), uint32(want))
			}
		}
	}
	if _, err := Run(t.Context(), Command{Path: "/nowhere", Argv: []string{"x"}}); !os.IsNotExist(err) {
		t.Errorf("Run of no program: %v", err)
	}
}

// A stopped command stays stopped, so that its shell can see it, until it is continued.
func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	c := shell("kill -STOP $$; exit 5")
	c.Mode = trace.IO
	c.Started = func(pid int) {
		go func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
				if err != nil {
					return
				}
				if bytes.Contains(status, []byte("\nState:\tt")) { // or in a trace stop: SIGCONT is harmless
					_ = unix.Kill(pid, unix.SIGCONT)
				}
			}
		}()
	}
	if r := traced(t, c); r.Trace.Exit != 5 {
		t.Errorf("it ended with %d %s", r.Trace.Exit, r.Trace.Signal)
	}
}

// Processes that remain when a command has ended are killed on request, or when the context ends.
func TestLeftoverProcesses(t *testing.T) {
	t.Parallel()
	c := shell("setsid sleep 1000 & exit 0")
	c.Alone = true
	if tr := well(t, c); len(tr.Processes) != 2 || tr.Processes[1].Signal != "SIGKILL" {
		t.Errorf("alone: %+v", tr.Processes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = shell("setsid sleep 1000 & exit 0")
	c.Ended = cancel
	if r, err := Run(ctx, c); err != nil || r.Status != 0 || r.Trace.Processes[1].Signal != "SIGKILL" {
		t.Errorf("the context ended: %+v, %v", r, err)
	}
}

// The memory peak is that of processes that exist at the same time (F63).
func TestPeak(t *testing.T) {
	t.Parallel()
	const mib = 100
	for how, times := range map[string]int64{"at once": 2, "in turn": 1} {
		tr := well(t, self("overlap", how, strconv.Itoa(mib)))
		// The three programs themselves need 10 MiB each, and 30 with the race detector.
		if peak := tr.Peak(); peak < times*mib<<20 || peak > (times*mib+95)<<20 {
			t.Errorf("%s: peak of %d MiB, want %d and a bit", how, peak>>20, times*mib)
		}
	}
}

// CPU time includes all processes, and agrees with the kernel's sum for the process that waits for them (F64).
func TestCPU(t *testing.T) {
	t.Parallel()
	r := traced(t, self("burn", "150", "too"))
	want := time.Duration(r.Used.Utime.Nano() + r.Used.Stime.Nano())
	got := r.Trace.CPU()
	if len(r.Trace.Processes) != 2 || got < 300*time.Millisecond || (got-want).Abs() > want/50 {
		t.Errorf("cpu time %v of %d processes, the kernel says %v", got, len(r.Trace.Processes), want)
	}
}

// Tracing works for an ordinary user as it does for root; root's filter needs no further privileges, and set-user-ID
// programs gain no privileges.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "user", "echo x | cat")
	cmd.Env = append(os.Environ(), deedVariable+"=trace")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, line, _ := strings.Cut(string(out), "x\n") // the command's output comes first
	err = trace.Read(strings.NewReader(strings.Replace(line, `"id":""`, `"id":"1"`, 1)), "out", func(tr *trace.Trace) error {
		if tr.Overhead.By != "seccomp" || tr.Kinds[trace.Pipe].Written != 2 || len(tr.Processes) != 3 {
			t.Errorf("by an ordinary user: %+v", tr)
		}
		return nil
	})
	if err != nil || line == "" {
		t.Errorf("%v: %s", err, out)
	}
}

// A command does not outlive its tracer, because without the tracer its calls would fail.
func TestTracerIsKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "root", "echo $$; exec sleep 1000")
	cmd.Env = append(os.Environ(), deedVariable+"=trace")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	status := "/proc/" + strings.TrimSpace(line) + "/status"
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); <-tick.C {
		text, err := os.ReadFile(status)
		if err != nil || bytes.Contains(text, []byte("\nState:\tZ")) { // possibly not yet reaped
			return
		}
	}
	t.Errorf("process %s goes on", line)
}

// Several commands are traced at the same time, next to untraced children: no tracer reaps another's process.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 8 {
				status := strconv.Itoa(i)
				r, err := Run(t.Context(), shell("/bin/true; /bin/true & wait; exit "+status))
				if err != nil || r.Trace.Exit != i || len(r.Trace.Processes) != 3 {
					t.Errorf("traced: %+v, %v", r.Trace, err)
				}
				err = exec.Command("/bin/sh", "-c", "exit "+status).Run()
				if exit, ok := errors.AsType[*exec.ExitError](err); ok != (i > 0) || ok && exit.ExitCode() != i {
					t.Errorf("not traced: %v, want exit status %d", err, i)
				}
			}
		})
	}
	all.Wait()
}

// A command begins with the same blocked and ignored signals as without a tracer.
func TestSignalsAtTheStart(t *testing.T) {
	t.Parallel()
	const script = "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"
	want, err := exec.Command("/bin/sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "status")
	well(t, shell(script+" >"+file))
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("traced: %s, not traced: %s, %v", got, want, err)
	}
}
