package gridsite

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
)

// A Stream is a command at a site while it runs: what is written reaches its stdin, and what is read comes from its
// stdout. It ends when its context does, when it is closed, or when the site is lost.
type Stream interface {
	io.ReadWriteCloser

	// Wait returns once the command is gone, with what it said on stderr if it failed. The connection's loss is a
	// corral.Unknown error. Whoever waits must also read: a command whose output is not taken does not end.
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

// A Complaint is the end of what a command writes to stderr.
type Complaint struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last part of what was written.
func (c *Complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-maxComplaint):]
	return len(p), nil
}

// Failure is the error of a command that ended with a status, nil for 0.
func (c *Complaint) Failure(name string, status int) error {
	if status == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return corral.Errorf(corral.Failed, "%s: exit status %d: %s", name, status, strings.TrimSpace(LastLine(c.text)))
}
