package gridsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
)

// MaxOutput is how much a command may write to stdout, and to stderr, in bytes. One that writes more
// is killed: what a site sends must not exhaust the service.
const MaxOutput = 16 << 20

// lingerDelay is how long Run waits for the output pipes to close once the command itself is over: a
// process that it left in the background may hold them open for ever.
const lingerDelay = 2 * time.Second

// local is the transport to the machine that we run on.
type local struct{}

func (local) Close() error { return nil }

// Run runs the command in a process group of its own, which is killed as a whole when ctx ends.
func (local) Run(ctx context.Context, c Command) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout, stderr := &output{overflow: cancel}, &output{overflow: cancel}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = lingerDelay
	if err := cmd.Start(); err != nil {
		return notStarted(ctx, c.Argv[0], err)
	}
	err := cmd.Wait()
	if ctx.Err() != nil && err != nil {
		return Result{}, corral.Errorf(corral.Unknown, "running %s: %w", c.Argv[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return Result{}, corral.Errorf(corral.Unknown, "running %s: %w", c.Argv[0], err)
	}
	return Result{Exit: exitStatus(cmd.ProcessState), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, nil
}

// notStarted is the result of a command that could not be started: what a shell says of one that is
// missing or not executable, and otherwise an error that promises that nothing was done.
func notStarted(ctx context.Context, name string, err error) (Result, error) {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return Result{Exit: 127, Stderr: []byte(err.Error() + "\n")}, nil
	case errors.Is(err, fs.ErrPermission):
		return Result{Exit: 126, Stderr: []byte(err.Error() + "\n")}, nil
	}
	return Result{}, corral.Errorf(corral.Unavailable, "starting %s: %w", name, err)
}

// exitStatus is the status of an ended process as a shell would tell it.
func exitStatus(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}

// output keeps what a command writes, and ends the command when that is more than MaxOutput.
type output struct {
	bytes.Buffer
	overflow context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > MaxOutput {
		o.overflow(errOutput)
		return 0, errOutput
	}
	return o.Buffer.Write(p)
}

var errOutput = fmt.Errorf("more than %d bytes of output", MaxOutput)

// ReadFrom hides the buffer's own, which knows no limit.
func (o *output) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// Put writes through a temporary file in the same directory. After an error path holds what it held
// before, and the temporary file is gone.
func (local) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".corral-put-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = io.Copy(tmp, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
	err = errors.Join(err, tmp.Chmod(mode.Perm()), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
