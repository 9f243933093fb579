// Package local implements the transport to this machine: a command is a process group, and files are written directly.
//
// Conn is a gridsite.Conn, and its zero value is ready for use. Commands have all rights of this program's user: the
// package does not confine them.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// Conn runs commands and writes files on this machine, as the user of this program. It has no connection that could be
// lost.
type Conn struct{}

// Close does nothing.
func (Conn) Close() error { return nil }

// Run runs the command in a process group of its own. The end of ctx, or too much output, kills the whole group,
// because killing only a shell would leave its children. If a background process holds the output open, Run waits at
// most gridsite.Linger for it.
func (Conn) Run(ctx context.Context, c gridsite.Command) (gridsite.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout, stderr := &output{overflow: cancel}, &output{overflow: cancel}
	cmd := command(ctx, c.Argv)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		return notStarted(ctx, c.Argv[0], err)
	}
	err := unlessStuck(ctx, cmd.Wait)
	if ctx.Err() != nil && err != nil {
		return gridsite.Result{}, corral.Errorf(corral.Unknown, "running %s: %w", c.Argv[0], context.Cause(ctx))
	}
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended && !errors.Is(err, exec.ErrWaitDelay) {
		return gridsite.Result{}, corral.Errorf(corral.Unknown, "running %s: %w", c.Argv[0], err)
	}
	return gridsite.Result{Exit: exitStatus(cmd.ProcessState), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, nil
}

// stuckAfter is the time that a call may take, after the end of its context, until the killed process has ended and its
// output is closed.
const stuckAfter = 2 * gridsite.Linger

// errStuck is the error of a call that was abandoned. SIGKILL does not end a process that waits for an unresponsive
// file system, and a system call of this program can hang in the same way.
var errStuck = errors.New("the file system does not answer")

// unlessStuck returns the result of do, which should end with ctx. If do has not returned stuckAfter after the end of
// ctx, it is abandoned; its goroutine ends when the file system answers again.
func unlessStuck(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(stuckAfter)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return errStuck
	}
}

// command returns a command with its own process group, which is killed as a whole when ctx ends.
func command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = gridsite.Linger
	return cmd
}

// notStarted returns the result of a command that could not be started. For a missing or non-executable command it is a
// shell's result, so that local and remote sites answer alike; otherwise it is an error which means that nothing was
// done.
func notStarted(ctx context.Context, name string, err error) (gridsite.Result, error) {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return gridsite.Result{Exit: 127, Stderr: []byte(err.Error() + "\n")}, nil
	case errors.Is(err, fs.ErrPermission):
		return gridsite.Result{Exit: 126, Stderr: []byte(err.Error() + "\n")}, nil
	}
	return gridsite.Result{}, corral.Errorf(corral.Unavailable, "starting %s: %w", name, err)
}

// exitStatus returns the status of an ended process as a shell would report it.
func exitStatus(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}

// output keeps a command's output, and ends the command when the output exceeds MaxOutput.
type output struct {
	bytes.Buffer
	overflow context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > gridsite.MaxOutput {
		o.overflow(gridsite.ErrOutput)
		return 0, gridsite.ErrOutput
	}
	return o.Buffer.Write(p)
}

// ReadFrom hides the buffer's own method, which io.Copy would prefer and which has no limit.
func (o *output) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// Put writes a temporary file in the same directory and renames it. After an error the old content of path is
// unchanged, and the temporary file is removed.
func (Conn) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	err := unlessStuck(ctx, func() error { return put(ctx, path, mode, r) })
	if errors.Is(err, errStuck) {
		return corral.Errorf(corral.Unknown, "writing %s: %w", path, err)
	}
	return err
}

func put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".corral-put-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = io.Copy(tmp, input.Limit(ctx, r, math.MaxInt64-1))
	err = errors.Join(err, tmp.Chmod(mode.Perm()), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
