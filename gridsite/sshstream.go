package gridsite

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
)

// maxGreeting is how much a login shell may print before the command begins, in bytes.
const maxGreeting = 1 << 20

// sshStream is a command on a session of its own. It does not count among the commands that run at once: it is there
// for hours.
type sshStream struct {
	ssh.Channel
	out   *bufio.Reader // from where the command's own begins
	stop  func() bool   // no longer ends it with its context
	once  sync.Once
	heard chan struct{} // closed once stderr has ended
	ended chan struct{} // closed once err is set
	err   error
}

// lastWords is how long what a command said on stderr may take to arrive after its exit status. What it left running
// may keep stderr open for ever.
const lastWords = 2 * time.Second

// Stream starts the command over the site's connection, below the user's login shell as Run does.
func (s *SSH) Stream(ctx context.Context, cmd Command) (Stream, error) {
	mark := rand.Text()
	line, err := remoteLine(mark, cmd.Argv)
	if err != nil {
		return nil, err
	}
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	<-s.gate
	st := &sshStream{Channel: c.Channel, out: bufio.NewReaderSize(c.Channel, 64<<10), heard: make(chan struct{}), ended: make(chan struct{})}
	st.stop = context.AfterFunc(ctx, func() { c.Close() })
	said := &complaint{}
	if err := st.begin(c, line, mark, said); err != nil {
		st.stop()
		c.Close()
		return nil, fmt.Errorf("%s: starting %s: %w", s.contact, cmd.Argv[0], err)
	}
	go st.await(c, cmd.Argv[0], said)
	return st, nil
}

// begin sends the command and reads up to where its own output begins.
func (st *sshStream) begin(c *channel, line, mark string, said *complaint) error {
	ok, err := c.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	if err != nil {
		return errLost
	}
	if !ok {
		return corral.Errorf(corral.Unavailable, "the server runs no commands for this user")
	}
	go func() {
		defer close(st.heard)
		_, _ = io.Copy(said, &afterMark{r: bufio.NewReader(c.Stderr()), mark: mark})
	}()
	if err := skipTo(st.out, mark); err != nil {
		status, ended := exitOf(c.requests)
		if !ended {
			return errLost
		}
		return corral.Errorf(corral.Unavailable, "the login shell ended, with exit status %d, before the command began", status)
	}
	return nil
}

// skipTo reads lines up to the one that begins with mark.
func skipTo(r *bufio.Reader, mark string) error {
	for read := 0; read < maxGreeting; {
		line, err := r.ReadSlice('\n')
		read += len(line)
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		if strings.HasPrefix(string(line), mark) {
			return nil
		}
	}
	return errOutput
}

// afterMark reads what follows the line with the mark.
type afterMark struct {
	r    *bufio.Reader
	mark string
}

func (a *afterMark) Read(p []byte) (int, error) {
	if a.mark != "" {
		if err := skipTo(a.r, a.mark); err != nil {
			return 0, err
		}
		a.mark = ""
	}
	return a.r.Read(p)
}

// await waits for the end of the command, or of the connection.
func (st *sshStream) await(c *channel, name string, said *complaint) {
	defer close(st.ended)
	status, ended := exitOf(c.requests)
	go ssh.DiscardRequests(c.requests)
	if !ended {
		st.err = errLost
		return
	}
	select {
	case <-st.heard:
	case <-time.After(lastWords):
	}
	st.err = said.failure(name, status)
}

func (st *sshStream) Read(p []byte) (int, error) { return st.out.Read(p) }

func (st *sshStream) Wait() error {
	<-st.ended
	return st.err
}

// Close ends the session: the command's input ends, and what it writes finds nobody.
func (st *sshStream) Close() error {
	st.once.Do(func() {
		st.stop()
		_ = st.Channel.Close()
	})
	return nil
}
