package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// A stream is a process group on this machine. Its output goes through an io.Pipe, because package exec closes its own
// pipe as soon as the command has ended, even if some output is unread.
type stream struct {
	io.ReadCloser  // stdout
	io.WriteCloser // stdin
	cancel         context.CancelFunc
	ended          chan struct{} // closed once err is set
	err            error
}

// Stream starts the command in a process group of its own.
func (Conn) Stream(ctx context.Context, c gridsite.Command) (gridsite.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := command(ctx, c.Argv)
	said := &gridsite.Complaint{}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	if err == nil {
		pr, pw := io.Pipe()
		cmd.Stdout = pw
		s := &stream{ReadCloser: pr, WriteCloser: stdin, cancel: cancel, ended: make(chan struct{})}
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

// outcome returns the result of Wait after the process has ended.
func (s *stream) outcome(ctx context.Context, name string, err error, said *gridsite.Complaint) error {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay), errors.Is(err, fs.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case ended:
		return said.Failure(name, exitStatus(exit.ProcessState))
	}
	return corral.Errorf(corral.Unknown, "%s: %w", name, err)
}

// Wait waits for the command's end and returns its error.
func (s *stream) Wait() error {
	<-s.ended
	return s.err
}

// Close kills the remaining processes of the command.
func (s *stream) Close() error {
	_ = s.WriteCloser.Close()
	_ = s.ReadCloser.Close()
	s.cancel()
	<-s.ended
	return nil
}
