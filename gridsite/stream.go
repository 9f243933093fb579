package gridsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/corral-pilot/corral"
)

// A Stream is a command at a site while it runs: what is written reaches its stdin, and what is read comes from its
// stdout. It ends when its context does, when it is closed, or when the site is lost.
type Stream interface {
	io.ReadWriteCloser

	// Wait returns once the command is gone, with what it said on stderr if it failed. The connection's loss is a
	// corral.Unknown error. Who waits also reads: a command whose output nobody takes does not end.
	Wait() error
}

// A Streamer is a Conn that can hold commands with live input and output. Such a command takes a session of the
// connection for as long as it runs.
type Streamer interface {
	// Stream starts cmd, whose Stdin is not used. An error of kind corral.Unavailable says that it was not started.
	Stream(ctx context.Context, cmd Command) (Stream, error)
}

// maxComplaint is how much of a stream's stderr is kept, the last part of it.
const maxComplaint = 4 << 10

// A complaint is the end of what a command writes to stderr.
type complaint struct {
	mu   sync.Mutex
	text []byte
}

func (c *complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-maxComplaint):]
	return len(p), nil
}

// failure is the error of a command that ended with a status, nil for 0.
func (c *complaint) failure(name string, status int) error {
	if status == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return corral.Errorf(corral.Failed, "%s: exit status %d: %s", name, status, strings.TrimSpace(lastLine(c.text)))
}

// localStream is a process group on this machine.
type localStream struct {
	io.ReadCloser  // stdout
	io.WriteCloser // stdin
	cancel         context.CancelFunc
	ended          chan struct{} // closed once err is set
	err            error
}

// Stream starts the command in a process group of its own.
func (local) Stream(ctx context.Context, c Command) (Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = lingerDelay
	said := &complaint{}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	if err == nil {
		pr, pw := io.Pipe()
		cmd.Stdout = pw
		s := &localStream{ReadCloser: pr, WriteCloser: stdin, cancel: cancel, ended: make(chan struct{})}
		if err = cmd.Start(); err == nil {
			go func() {
				s.err = s.outcome(ctx, c.Argv[0], cmd.Wait(), said)
				pw.Close()
				close(s.ended)
			}()
			return s, nil
		}
	}
	cancel()
	return nil, corral.Errorf(corral.Unavailable, "starting %s: %w", c.Argv[0], err)
}

// outcome is what Wait returns after the process's own end.
func (s *localStream) outcome(ctx context.Context, name string, err error, said *complaint) error {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay), errors.Is(err, fs.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case errors.As(err, &exit):
		return said.failure(name, exitStatus(exit.ProcessState))
	}
	return corral.Errorf(corral.Unknown, "%s: %w", name, err)
}

func (s *localStream) Wait() error {
	<-s.ended
	return s.err
}

// Close kills what is left of the command.
func (s *localStream) Close() error {
	_ = s.WriteCloser.Close()
	_ = s.ReadCloser.Close()
	s.cancel()
	<-s.ended
	return nil
}
