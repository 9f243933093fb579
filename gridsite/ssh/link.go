package ssh

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
)

// A link is the connection to a site, if there is one, and the result of the last login.
//
// Two tokens serialize logins. The holder of turn may log in without a person, and owns the fields below it. Commands
// that find no connection wait for turn, so that a hundred commands cause only one login. A login with a person's help
// holds the token asking, perhaps for minutes, and takes turn only at its end: in the meantime commands may fail, but
// no command waits for the person.
type link struct {
	site    site
	timing  *timing
	dialer  dialer
	life    context.Context // until Close
	end     context.CancelFunc
	current atomic.Pointer[connection] // set by the holder of turn
	asking  chan struct{}              // held during a login with the help of a person
	// held by readers of the fields below, for as long as a login without a person takes
	turn    chan struct{}
	failure error
	pause   time.Duration
	retryAt time.Time
}

var errClosed = errors.New("the connection was closed")

// A connection is a login to the site, and the logins at its jump hosts, in order. Each login depends on the previous
// ones: when one ends, all of them end, and lost is closed.
type connection struct {
	path    []hop
	clients []*ssh.Client           // of the hosts reached so far
	shown   []credential.Credential // credentials accepted by them; no answers of a person
	lost    chan struct{}
}

func (c *connection) site() *ssh.Client { return c.clients[len(c.clients)-1] }

// close begins with the login that holds the socket. All other logins use this socket, and closing them first could
// block on a failed network.
func (c *connection) close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

// Connect logs in as described for gridsite.Remote, even during the pause after a failure: a user who requests a login
// has probably fixed the cause. Run also logs in if necessary.
func (c *Conn) Connect(ctx context.Context, acceptHostKey bool) error {
	_, err := c.link.connected(ctx, true, help{acceptHostKey: acceptHostKey})
	return err
}

// Login logs in with the help of a person. Answers are not stored, but keys stay unlocked, so that a lost connection
// can be restored without the person.
func (c *Conn) Login(ctx context.Context, ask gridsite.Asker) error { return c.link.login(ctx, ask) }

// Stands reports whether the connection is up.
func (c *Conn) Stands() bool { return c.link.standing() != nil }

// Lost returns a channel that is closed when the current connection ends, or nil if there is no connection.
func (c *Conn) Lost() <-chan struct{} {
	if conn := c.link.standing(); conn != nil {
		return conn.lost
	}
	return nil
}

// connected returns the connection, and logs in if there is none. During the pause after a failure it returns that
// failure again, unless atOnce is set: a site in trouble, or a site that counts failed logins, must not receive a login
// from each of the engine's commands. It does not pause if an expired certificate has been replaced.
func (l *link) connected(ctx context.Context, atOnce bool, by help) (*connection, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, l.site.unavailable("waiting for the login: %w", context.Cause(ctx))
	}
	defer func() { <-l.turn }()
	switch c := l.standing(); {
	case l.life.Err() != nil:
		return nil, l.site.unavailable("%w", errClosed)
	case c != nil && !(atOnce && c.stale()):
		return c, nil
	case !atOnce && time.Now().Before(l.retryAt) && !renewed(l.failure):
		return nil, l.paused()
	}
	c, err := l.dial(ctx, by)
	if err != nil {
		return nil, l.refused(ctx, err)
	}
	l.use(c)
	return c, nil
}

// standing returns the connection, or nil if there is none.
func (l *link) standing() *connection {
	if c := l.current.Load(); c != nil && !isClosed(c.lost) {
		return c
	}
	return nil
}

// good returns the connection if its credentials are still valid for another login, and nil otherwise.
func (l *link) good() *connection {
	if c := l.standing(); c != nil && !c.stale() {
		return c
	}
	return nil
}

// use makes c the connection, and closes a stale connection that it replaces. It starts two goroutines: one waits for
// the connection's end and closes the remaining logins, and the other detects that the connection is dead although it
// has not ended. Both end once lost is closed.
func (l *link) use(c *connection) {
	if old := l.current.Swap(c); old != nil {
		old.close()
	}
	l.failure, l.pause, l.retryAt = nil, 0, time.Time{}
	go func() { _ = c.site().Wait(); c.close(); close(c.lost) }()
	go c.keepAlive(l.timing)
}

// refused records a failed login and returns the failure with the time of the next try. A login that the caller or
// Close aborted is not evidence about the site and causes no pause.
func (l *link) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil || l.life.Err() != nil {
		return l.site.unavailable("%w", err)
	}
	l.failed(err)
	return l.paused()
}

// paused returns the failure of the last login.
func (l *link) paused() error {
	return l.site.unavailable("%w", &gridsite.Paused{Until: l.retryAt, Err: l.failure})
}

// failed sets the time of the next try. The pause doubles up to maxPause, with jitter so that sites behind one login
// host are not tried in step. If a person has to act, the pause is the longer loginPause, because a server may lock out
// a user after many failures.
func (l *link) failed(err error) {
	l.failure = err
	l.pause = min(max(2*l.pause, l.timing.minPause), l.timing.maxPause)
	pause := l.pause
	if _, denied := errors.AsType[*gridsite.LoginError](err); denied {
		pause = l.timing.loginPause
	}
	l.retryAt = time.Now().Add(pause + rand.N(pause/4+1))
}

// isClosed reports whether a channel that carries no values has been closed.
func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keepAlive closes a connection that no longer answers, so that all operations that wait for it fail. A machine that
// sleeps or loses its network does not close its connections, and TCP alone would take many minutes to detect this.
func (c *connection) keepAlive(t *timing) {
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

// dial logs in, until the caller gives up or the link is closed.
func (l *link) dial(ctx context.Context, by help) (*connection, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.life, func() { cancel(errClosed) })
	defer stop()
	return l.dialer.dial(ctx, by)
}

// login logs in with the help of a person, unless there is a good connection. It dials without holding turn, so that no
// command waits for the person, and takes turn only to store the result. If another login has succeeded by then, the
// other connection is kept and this one is closed.
func (l *link) login(ctx context.Context, ask gridsite.Asker) error {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	default:
		return corral.ErrorAt(corral.Conflict, string(l.site), "someone is already logging in")
	}
	if l.good() != nil {
		return nil
	}
	c, err := l.dial(ctx, help{ask: ask})
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	switch {
	case err != nil && l.good() != nil:
		return nil
	case err != nil:
		return l.refused(ctx, err)
	case l.life.Err() != nil:
		c.close()
		return l.site.unavailable("%w", errClosed)
	case l.good() != nil:
		c.close()
	default:
		l.use(c)
	}
	return nil
}

// close ends the link; it may be called during commands and logins. Ending life aborts the current login, which
// releases turn, and prevents later ones.
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
