package ssh

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
)

// maxSessions is the number of commands that run concurrently over one connection. OpenSSH's sshd allows 10 sessions by
// default; the other two are used to kill cancelled commands.
const maxSessions = 8

// sessions manages the sessions of the connection, whose number is limited by the server. Commands wait at the gate; a
// stream passes the gate like a command and then releases its place, because it lasts for hours.
type sessions struct {
	site   site
	link   *link
	timing *timing
	gate   chan struct{} // one place per running command
	inside atomic.Int32  // number of commands that have a session
	freed  chan struct{} // receives a value when a command has ended
}

// A channel is one session at the site.
type channel struct {
	ssh.Channel
	requests <-chan *ssh.Request
	on       *connection
}

// Pauses between two attempts to open a session when the server refuses: it may admit fewer sessions than expected, and
// counts an ended session as open for a moment. If none of our commands has a session, refusals are tolerated for
// timing.refused.
const (
	minRefused = 20 * time.Millisecond
	maxRefused = time.Second
)

// open opens a session as soon as one is available. The caller must release its place with leave or stay.
//
// Two failures look similar at first. If a server admits no further session, it refuses, and open tries again when one
// of our sessions has ended, or after a pause. A dead connection that has not been detected yet fails in another way:
// nothing has been done at the site so far, so open reconnects once. If the new connection fails in the same way, the
// server accepts this user's login and then closes every connection.
func (s *sessions) open(ctx context.Context) (_ *channel, err error) {
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, s.site.unavailable("waiting for other commands: %w", context.Cause(ctx))
	}
	defer func() {
		if err != nil {
			<-s.gate
		}
	}()
	pause, alone, again := minRefused, time.Duration(0), false
	for {
		c, err := s.link.connected(ctx, false, help{})
		if err != nil {
			return nil, err
		}
		session, err := c.session(ctx)
		_, refused := errors.AsType[*ssh.OpenChannelError](err)
		switch {
		case err == nil:
			s.inside.Add(1)
			return session, nil
		case ctx.Err() != nil:
			return nil, s.site.unavailable("opening a session: %w", err)
		case again && !refused:
			h := c.path[len(c.path)-1]
			return nil, s.site.unavailable("%s lets %s in and then ends the connection: may that user log in there?",
				h.address(), h.user)
		case alone > s.timing.refused:
			return nil, s.site.unavailable("opening a session: the server admits no more of them (its MaxSessions): %w",
				err)
		case !refused:
			again = true
			c.close()
			<-c.lost
			continue
		}
		if alone += pause; s.inside.Load() > 0 {
			alone = 0
		}
		select {
		case <-ctx.Done():
		case <-s.freed:
			pause = minRefused / 2
		case <-time.After(pause):
		}
		pause = min(2*pause, maxRefused)
	}
}

// stay releases the place of a command whose session remains open, so that no other command waits for its end.
func (s *sessions) stay() {
	s.inside.Add(-1)
	<-s.gate
}

// leave closes a session opened by open, and admits a waiting command. A server counts the session as open for a moment
// longer; the admitted command then pauses briefly and tries again.
func (s *sessions) leave(c *channel) {
	_ = c.Close()
	s.stay()
	select {
	case s.freed <- struct{}{}:
	default: // a signal is already pending
	}
}

// session opens a session on the connection. Package ssh may wait indefinitely for an answer on a connection that is
// being lost, so a goroutine waits for it; if the answer comes too late, the session is closed.
func (c *connection) session(ctx context.Context) (*channel, error) {
	type opened struct {
		*channel
		err error
	}
	answer := make(chan opened, 1)
	go func() {
		ch, requests, err := c.site().OpenChannel("session", nil)
		answer <- opened{&channel{ch, requests, c}, err}
	}()
	select {
	case o := <-answer:
		return o.channel, o.err
	case <-c.lost:
		return nil, errors.New("the connection was lost")
	case <-ctx.Done():
		go func() {
			if o := <-answer; o.err == nil {
				o.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// exec makes the server run a line in the user's login shell.
func (c *channel) exec(line string) error {
	ok, err := c.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	if err != nil {
		return errLost
	}
	if !ok {
		return corral.Errorf(corral.Unavailable, "the server runs no commands for this user")
	}
	return nil
}

// abandon closes the channel of a command that has not begun, whose process id is unknown. A server ends a session only
// after its process, so the signal is sent first.
func (c *channel) abandon() {
	c.signal()
	_ = c.Close()
}

// signal requests the server to kill the command.
func (c *channel) signal() {
	_, _ = c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
}

// kill ends a command that is no longer wanted. It requests the server to send a signal. OpenSSH forwards signals only
// for ordinary users, and older versions do not forward them at all, so a second command also kills the process group.
// The command leads its process group because it has replaced the login shell.
func (c *channel) kill(ctx context.Context, pid string) {
	c.signal()
	session, err := c.on.session(ctx)
	if err != nil {
		return
	}
	defer session.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if session.exec("kill -9 -"+pid) == nil {
			exitOf(session.requests)
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
