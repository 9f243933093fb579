package ssh

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
)

// maxSessions is how many commands run at once over one connection. OpenSSH's sshd allows 10 unless its administrator
// says otherwise; the others are for the kill of what was cancelled.
const maxSessions = 8

// sessions are the connection's, of which a server admits only so many. Commands queue at the gate; a stream passes it
// like a command and then gives its place back, since it stays for hours.
type sessions struct {
	site   site
	link   *link
	timing *timing
	gate   chan struct{} // one place for each command that runs
	inside atomic.Int32  // of those how many have a session
	freed  chan struct{} // has something when a command has ended
}

// A channel is one session at the site.
type channel struct {
	ssh.Channel
	requests <-chan *ssh.Request
	on       *connection
}

// Pauses between two attempts to open a session that the server refuses: it may admit fewer than we think, and counts
// one as open for a moment after its end. While none of our commands has one, that is borne for timing.refused.
const (
	minRefused = 20 * time.Millisecond
	maxRefused = time.Second
)

// open opens a session as soon as there may be one more. The caller gives its place back, with leave or stay.
//
// Two things may go wrong, and look alike at first. A server that admits no further session says so, and is asked again
// in a while: as soon as one of our own has ended, or after a pause. A connection that is dead, and has not been
// noticed yet, fails in another way: nothing has been done at the site so far, so it is made again, once. If that fails
// in the same way, the server lets this user in and then ends everything.
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

// stay gives back the place of a command whose session remains open, so that no other command waits for its end.
func (s *sessions) stay() {
	s.inside.Add(-1)
	<-s.gate
}

// leave closes a session that open opened, and lets in a command that waits for one. A server counts the session for a
// moment longer; the command that is let in then makes a short pause and asks again.
func (s *sessions) leave(c *channel) {
	_ = c.Close()
	s.stay()
	select {
	case s.freed <- struct{}{}:
	default: // somebody is told already
	}
}

// session opens one more session on the connection. Package ssh may wait without end for the answer of a connection
// that is just being lost, so it asks in a goroutine; a session that is answered after nobody wants it is closed.
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

// exec has the server run a line in the user's login shell.
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

// abandon closes the channel of a command that has not begun, so that its process id is not known. A server ends a
// session only once its process has gone, which is why the signal comes first.
func (c *channel) abandon() {
	c.signal()
	_ = c.Close()
}

// signal asks the server to kill the command.
func (c *channel) signal() {
	_, _ = c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
}

// kill ends a command that is not wanted any longer. The server is asked to. OpenSSH passes signals on only for
// ordinary users, and older versions for none, so a command of its own kills the process group, too: the login shell
// has become the command and leads that group.
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
