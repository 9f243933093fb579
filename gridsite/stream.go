package gridsite

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
)

// A Stream is a running command at a site: Write writes to its stdin, and Read reads from its stdout. It ends with its
// context, when it is closed, or when the site is lost.
type Stream interface {
	io.ReadWriteCloser

	// Wait returns when the command has ended; if the command failed, the error contains its stderr. If the connection
	// was lost, the error is corral.Unknown. The caller must also read, because a command with unread output does not
	// end.
	Wait() error
}

// A Streamer is a Conn that supports commands with live input and output. Such a command uses a session of the
// connection as long as it runs.
type Streamer interface {
	// Stream starts cmd and ignores its Stdin. An error of kind corral.Unavailable means that the command did not
	// start.
	Stream(ctx context.Context, cmd Command) (Stream, error)
}

// maxComplaint is the number of bytes, from the end of a stream's stderr, that are kept.
const maxComplaint = 4 << 10

// A Complaint keeps the last part of a command's stderr, which is written to it.
type Complaint struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last part of the text.
func (c *Complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-maxComplaint):]
	return len(p), nil
}

// Failure returns the error of a command that ended with a status, nil for 0.
func (c *Complaint) Failure(name string, status int) error {
	if status == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return corral.Errorf(corral.Failed, "%s: exit status %d: %s", name, status, strings.TrimSpace(LastLine(c.text)))
}
