package cli

// profile trace runs a command and watches its processes. It interferes as little as possible: the command inherits
// this program's streams, folder and environment, signals are forwarded to the command, and this program ends in the
// same way as the command. The trace is written to stderr when the command is over, or to a file.

import (
	"context"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/ptrace"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

func (v profileVerbs) traceCommand() *cli.Command {
	return &cli.Command{
		Name: "trace",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-io", Usage: "trace starts and ends of processes, not their reads and writes"},
			&cli.StringFlag{Name: "out", Usage: "append the trace to `FILE` as a line of JSON, and print nothing"},
			&cli.StringFlag{Name: "name", Usage: "the kind of task is `NAME` (default: the program's name)"},
			&cli.StringFlag{Name: "run", Usage: "the task belongs to `RUN` (default: the file that the trace is in)"},
		},
		Action: v.trace,
	}
}

// A taskExit reports that a traced command failed.
type taskExit struct{ status syscall.WaitStatus }

func (e taskExit) Error() string {
	if e.status.Signaled() {
		return "killed by " + unix.SignalName(e.status.Signal())
	}
	return "exit status " + strconv.Itoa(e.status.ExitStatus())
}

// exitCode returns the command's exit code. If a signal ended the command, the same signal ends this program; the code
// is used only if the signal does not end this program.
func (e taskExit) exitCode() int {
	if !e.status.Signaled() {
		return e.status.ExitStatus()
	}
	dieBySignal(e.status.Signal())
	return 128 + int(e.status.Signal())
}

// trace runs the command that the arguments specify, and traces it.
func (v profileVerbs) trace(c *cli.Context) error {
	argv := c.Args().Slice()
	path, err := programOf(argv[0])
	if err != nil {
		return err
	}
	out, err := traceFile(c.String("out"))
	if err != nil {
		return err
	}
	defer out.Close()
	mode := trace.IO
	if c.Bool("no-io") {
		mode = trace.Processes
	}
	result, err := runTraced(argv, path, mode)
	if err != nil {
		return corral.Errorf(corral.KindOr(err, corral.Failed), "%s: %w", argv[0], err)
	}
	t := &result.Trace
	t.Run, t.ID = c.String("run"), t.StartedAt.Format(time.RFC3339Nano)+" "+strconv.Itoa(t.Processes[0].ID)
	if name := c.String("name"); name != "" {
		t.Transformation = name
	}
	if err := v.tellTrace(t, out); err != nil {
		return err
	}
	if !t.OK() {
		return taskExit{result.Status}
	}
	return nil
}

// programOf finds the program of a command, as a shell does.
func programOf(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot): // a shell also accepts the program if PATH includes the folder
		return path, nil
	case errors.Is(err, fs.ErrPermission):
		return "", corral.Errorf(corral.Failed, "%s cannot be executed: %w", name, fs.ErrPermission)
	case err != nil:
		return "", corral.Errorf(corral.NotFound, "there is no program %q", name)
	}
	return path, nil
}

// traceFile opens the file to which a trace is appended, before the command runs, so that no trace is lost. It returns
// nil if there is no such file.
func traceFile(name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--out", "%w", err)
	}
	return f, nil
}

// runTraced runs a command with this process's streams. Signals are forwarded while the command runs; after that, a
// signal ends the processes that the command has left behind.
func runTraced(argv []string, path string, mode trace.Mode) (ptrace.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := forwarder{left: cancel}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	go func() {
		for {
			select {
			case s := <-signals:
				f.forward(s.(syscall.Signal))
			case <-ctx.Done():
				return
			}
		}
	}()
	return ptrace.Run(ctx, ptrace.Command{
		Path: path, Argv: argv, Mode: mode, Started: f.started, Ended: f.ended,
		Attr: syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}},
	})
}

// A forwarder forwards signals to a process.
type forwarder struct {
	left func() // ends the processes that the command left behind

	mu    sync.Mutex // guards the fields below
	pid   int        // -1: the process has ended; 0: it has not started
	early []syscall.Signal
}

// started forwards the signals that were received before the process existed.
func (f *forwarder) started(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pid = pid
	for _, s := range f.early {
		_ = unix.Kill(pid, s)
	}
}

func (f *forwarder) ended() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pid = -1
}

// forward forwards a signal, unless it was sent by the terminal, which has also sent it to the process.
func (f *forwarder) forward(s syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.pid < 0:
		f.left()
	case f.pid == 0:
		f.early = append(f.early, s)
	case (s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGHUP) && inForeground():
	default:
		_ = unix.Kill(f.pid, s)
	}
}

// inForeground reports whether the terminal sends its signals to the group of this process.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// tellTrace writes the trace to a file, if a file is given, or prints it.
func (v profileVerbs) tellTrace(t *trace.Trace, out *os.File) error {
	if out != nil {
		line, err := t.Line()
		if err == nil {
			_, err = out.Write(line) // in one write, because others may also append to the file
		}
		if err != nil {
			return corral.ErrorAt(corral.Failed, "--out", "writing the trace: %w", err)
		}
		return nil
	}
	onErr := *v.printer
	onErr.out = v.err
	if v.quiet {
		return nil
	}
	if !v.forPeople() {
		return onErr.encode(t)
	}
	return profileVerbs{&onErr}.showTrace(t)
}

// dieBySignal ends this process by a signal, so that the parent process observes the same end as for the command. It
// leaves no core file, and it bypasses Go's signal handlers.
func dieBySignal(s syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	var byDefault [4]uint64 // struct sigaction: SIG_DFL, no flags, no mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0,
		bits.UintSize/8, 0, 0)
	_ = unix.Kill(unix.Getpid(), s)
}
