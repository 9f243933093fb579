package ssh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral/gridsite"
)

// A link is the connection to a site, if there is one, and what became of the last attempt to make one.
type link struct {
	life    context.Context // until Close
	end     context.CancelFunc
	current atomic.Pointer[connection] // set by whoever has the turn
	asking  chan struct{}              // held by whoever logs in with the help of a person
	turn    chan struct{}              // held by whoever looks at the fields below, for as long as a login without one takes
	failure error
	pause   time.Duration
	retryAt time.Time
}

var errClosed = errors.New("the connection was closed")

// A connection is a login to the site, and those to the hosts that it goes through, the first one first.
type connection struct {
	path    []hop
	clients []*ssh.Client // of as many of them as let us in
	lost    chan struct{}
}

func (c *connection) site() *ssh.Client { return c.clients[len(c.clients)-1] }

// close begins with the one that holds the socket: the others cannot be blocked by it then.
func (c *connection) close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

// A channel is one session at the site.
type channel struct {
	ssh.Channel
	requests <-chan *ssh.Request
	on       *connection
}

// Connect logs in, as gridsite.Remote says. Run does so too when it has to.
func (s *Conn) Connect(ctx context.Context, acceptHostKey bool) error {
	_, err := s.connected(ctx, true, help{acceptHostKey: acceptHostKey})
	return err
}

// connected returns the connection, and makes it if need be.
func (s *Conn) connected(ctx context.Context, atOnce bool, by help) (*connection, error) {
	select {
	case s.link.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, s.unavailable("waiting for the login: %w", context.Cause(ctx))
	}
	defer func() { <-s.link.turn }()
	l := &s.link
	switch c := l.standing(); {
	case l.life.Err() != nil:
		return nil, s.unavailable("%w", errClosed)
	case c != nil:
		return c, nil
	case !atOnce && time.Now().Before(l.retryAt):
		return nil, s.paused()
	}
	c, err := s.dial(ctx, by)
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	s.use(c)
	return c, nil
}

// standing returns the connection, nil if there is none.
func (l *link) standing() *connection {
	if c := l.current.Load(); c != nil && !isClosed(c.lost) {
		return c
	}
	return nil
}

// use makes c the connection.
func (s *Conn) use(c *connection) {
	l := &s.link
	l.current.Store(c)
	l.failure, l.pause, l.retryAt = nil, 0, time.Time{}
	go func() { _ = c.site().Wait(); c.close(); close(c.lost) }()
	go c.keepAlive(s.timing)
}

// refused notes that a login failed, unless it was given up.
func (s *Conn) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil || s.link.life.Err() != nil {
		return s.unavailable("%w", err)
	}
	s.link.failed(err, s.timing)
	return s.paused()
}

// paused is the failure of the last login.
func (s *Conn) paused() error {
	return s.unavailable("%w%s", &gridsite.Paused{Until: s.link.retryAt, Err: s.link.failure}, s.hint())
}

// failed sets the time of the next attempt: after a pause that doubles, with jitter; a long one where a person has to
// do something, because a server may lock out who fails too often.
func (l *link) failed(err error, t timing) {
	l.failure = err
	l.pause = min(max(2*l.pause, t.minPause), t.maxPause)
	pause := l.pause
	var login *gridsite.LoginError
	if errors.As(err, &login) {
		pause = t.loginPause
	}
	l.retryAt = time.Now().Add(pause + rand.N(pause/4+1))
}

// hint says what of the user's configuration Corral did not follow: it may be why a login fails.
func (s *Conn) hint() string {
	_, ignored, err := s.route()
	if err != nil || len(ignored) == 0 {
		return ""
	}
	return " (Corral does not follow " + strings.Join(ignored, ", ") + ")"
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keepAlive closes a connection that does not answer any longer, so that who waits on it learns it.
func (c *connection) keepAlive(t timing) {
	tick := time.NewTicker(t.keepalive)
	defer tick.Stop()
	for {
		select {
		case <-c.lost:
			return
		case <-tick.C:
		}
		silence := time.AfterFunc(t.answer, c.close)
		_, _, err := c.site().SendRequest("keepalive@openssh.com", true, nil)
		silence.Stop()
		if err != nil {
			c.close()
			return
		}
	}
}

// dial logs in at one host of the path after the other.
func (s *Conn) dial(ctx context.Context, by help) (*connection, error) {
	path, _, err := s.route()
	if err != nil {
		return nil, err
	}
	c := &connection{path: path, lost: make(chan struct{})}
	for _, h := range path {
		client, err := s.login(ctx, h, c, by)
		if err != nil {
			c.close()
			return nil, err
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

// login reaches one host, through the last one of c, within timing.dial; what a person takes to answer does not count.
func (s *Conn) login(ctx context.Context, h hop, c *connection, by help) (*ssh.Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := time.AfterFunc(s.timing.dial, func() { cancel(fmt.Errorf("%s: no answer within %v", h.address(), s.timing.dial)) })
	defer clock.Stop()
	stop := context.AfterFunc(s.link.life, func() { cancel(errClosed) })
	defer stop()
	conn, err := s.reach(ctx, h, c)
	if err == nil {
		var client *ssh.Client
		if client, err = s.greet(ctx, h, conn, clock, by); err == nil {
			return client, nil
		}
		conn.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // what it made of the connection says less
	}
	return nil, err
}

// reach connects with a host, through the last one of c.
func (s *Conn) reach(ctx context.Context, h hop, c *connection) (net.Conn, error) {
	before := len(c.clients)
	if before == 0 {
		return (&net.Dialer{}).DialContext(ctx, "tcp", h.address())
	}
	conn, err := c.site().DialContext(ctx, "tcp", h.address())
	if err != nil {
		return nil, fmt.Errorf("%s does not connect us with %s: %w", c.path[before-1].address(), h.address(), err)
	}
	return conn, nil
}

// greet shows who we are at the other end of conn, and sees who that is.
func (s *Conn) greet(ctx context.Context, h hop, conn net.Conn, clock *time.Timer, by help) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	keys, err := s.keyring(ctx, h, clock, by.ask)
	if err != nil {
		return nil, err
	}
	hostKeys, err := readHostKeys(h, by.acceptHostKey)
	if err != nil {
		return nil, err
	}
	sshConn, channels, requests, err := ssh.NewClientConn(conn, h.address(), &ssh.ClientConfig{
		User: h.user, Auth: keys.methods(), AuthCallback: keys.notice,
		HostKeyCallback: hostKeys.check, HostKeyAlgorithms: hostKeys.algorithms,
	})
	if err != nil {
		return nil, hostKeys.explain(keys.explain(err))
	}
	return ssh.NewClient(sshConn, channels, requests), nil
}

// close may be called while commands run, and while somebody logs in.
func (l *link) close() error {
	l.end()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if c := l.current.Load(); c != nil {
		c.close()
		<-c.lost
	}
	return nil
}

// Pauses between two attempts to open a session that the server refuses: it may admit fewer than we think, and counts
// one as open for a moment after its end. While none of our commands has one, that is borne for timing.refused.
const (
	minRefused = 20 * time.Millisecond
	maxRefused = time.Second
)

// open opens a session as soon as there may be one more. The caller gives its place back, with leave or stay. Nothing
// has been done at the site before, so a connection that turns out to be lost is made anew, once.
func (s *Conn) open(ctx context.Context) (_ *channel, err error) {
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, s.unavailable("waiting for other commands: %w", context.Cause(ctx))
	}
	defer func() {
		if err != nil {
			<-s.gate
		}
	}()
	pause, alone, again := minRefused, time.Duration(0), false
	for {
		c, err := s.connected(ctx, false, help{})
		if err != nil {
			return nil, err
		}
		session, err := c.session(ctx)
		var refused *ssh.OpenChannelError
		switch {
		case err == nil:
			s.inside.Add(1)
			return session, nil
		case ctx.Err() != nil:
			return nil, s.unavailable("opening a session: %w", err)
		case again && !errors.As(err, &refused):
			h := c.path[len(c.path)-1]
			return nil, s.unavailable("%s lets %s in and then ends the connection: may that user log in there?", h.address(), h.user)
		case alone > s.timing.refused:
			return nil, s.unavailable("opening a session: the server admits no more of them (its MaxSessions): %w", err)
		case !errors.As(err, &refused):
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

// stay gives back the place of a command whose session remains open, and is not waited for.
func (s *Conn) stay() {
	s.inside.Add(-1)
	<-s.gate
}

// leave closes a session that open opened, and lets in who waits for one.
func (s *Conn) leave(c *channel) {
	_ = c.Close()
	s.stay()
	select {
	case s.freed <- struct{}{}:
	default: // somebody is told already
	}
}

// session opens one more session on the connection. Package ssh may wait for ever for the answer of one that is just
// being lost.
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

// abandon closes the channel of a command that has not begun. A server ends a session only once its process has gone.
func (c *channel) abandon() {
	_, _ = c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
	_ = c.Close()
}

// kill ends a command that is not wanted any longer. The server is asked to, and where it does not pass signals on, as
// OpenSSH's for root, the process group is killed by a command of its own.
func (c *channel) kill(ctx context.Context, pid string) {
	_, _ = c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
	session, err := c.on.session(ctx)
	if err != nil {
		return
	}
	defer session.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ok, err := session.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{"kill -9 -" + pid}))
		if ok && err == nil {
			exitOf(session.requests)
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
