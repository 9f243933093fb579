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

// A link is the connection to a site, if there is one, and what became of the last attempt to make one.
//
// Two tokens keep logins apart. Whoever has the turn may log in without a person, and owns the fields below it;
// commands that find no connection queue for it, so that a hundred of them make one login and not a hundred. A login
// with a person takes the token asking instead, for minutes perhaps, and the turn only at its end: meanwhile commands
// may fail, but none of them waits for a person.
type link struct {
	site    site
	timing  *timing
	dialer  dialer
	life    context.Context // until Close
	end     context.CancelFunc
	current atomic.Pointer[connection] // set by whoever has the turn
	asking  chan struct{}              // held by whoever logs in with the help of a person
	// held by whoever looks at the fields below, for as long as a login without one takes
	turn    chan struct{}
	failure error
	pause   time.Duration
	retryAt time.Time
}

var errClosed = errors.New("the connection was closed")

// A connection is a login to the site, and the logins at the hosts that it goes through, the first one first. Each of
// them holds up those behind it: when one ends, all do, and lost is closed.
type connection struct {
	path    []hop
	clients []*ssh.Client           // of as many of them as let us in
	shown   []credential.Credential // by which they did; not what a person answered
	lost    chan struct{}
}

func (c *connection) site() *ssh.Client { return c.clients[len(c.clients)-1] }

// close begins with the login that holds the socket: the others go through it, and closing them first could block on a
// network that is gone.
func (c *connection) close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

// Connect logs in, as gridsite.Remote says, and without regard to the pause after a failure: a user who asks for it has
// changed something. Run logs in too when it has to.
func (c *Conn) Connect(ctx context.Context, acceptHostKey bool) error {
	_, err := c.link.connected(ctx, true, help{acceptHostKey: acceptHostKey})
	return err
}

// Login logs in with the help of a person. What is answered is forgotten, but for keys: they stay open, so that a
// connection that was lost can be made again without the person.
func (c *Conn) Login(ctx context.Context, ask gridsite.Asker) error { return c.link.login(ctx, ask) }

// Stands reports whether there is a connection.
func (c *Conn) Stands() bool { return c.link.standing() != nil }

// Lost is closed when the connection that stands has ended; nil if there is none.
func (c *Conn) Lost() <-chan struct{} {
	if conn := c.link.standing(); conn != nil {
		return conn.lost
	}
	return nil
}

// connected returns the connection, and makes it if there is none. Within the pause after a failure it returns that
// failure again, unless a user wants a try atOnce: a site in trouble, or one that counts failed logins, must not be
// asked by each of the engine's commands. Nor does it wait once an expired certificate was replaced.
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

// standing returns the connection, nil if there is none.
func (l *link) standing() *connection {
	if c := l.current.Load(); c != nil && !isClosed(c.lost) {
		return c
	}
	return nil
}

// good returns the connection if there is one that could be made again as it was; nil: there is none.
func (l *link) good() *connection {
	if c := l.standing(); c != nil && !c.stale() {
		return c
	}
	return nil
}

// use makes c the connection, in the place of a stale one. Two goroutines belong to it: one waits for its end and
// closes what is left of it, the other finds out when it is dead without having ended. Both are gone once lost is
// closed.
func (l *link) use(c *connection) {
	if old := l.current.Swap(c); old != nil {
		old.close()
	}
	l.failure, l.pause, l.retryAt = nil, 0, time.Time{}
	go func() { _ = c.site().Wait(); c.close(); close(c.lost) }()
	go c.keepAlive(l.timing)
}

// refused notes that a login failed, and returns the failure with the time of the next attempt. A login that was given
// up by the caller, or by Close, says nothing of the site and begins no pause.
func (l *link) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil || l.life.Err() != nil {
		return l.site.unavailable("%w", err)
	}
	l.failed(err)
	return l.paused()
}

// paused is the failure of the last login.
func (l *link) paused() error {
	return l.site.unavailable("%w", &gridsite.Paused{Until: l.retryAt, Err: l.failure})
}

// failed sets the time of the next attempt: after a pause that doubles up to maxPause, with jitter so that sites behind
// one login host are not tried in step; after the long loginPause where a person has to do something, because a server
// may lock out a user who fails too often.
func (l *link) failed(err error) {
	l.failure = err
	l.pause = min(max(2*l.pause, l.timing.minPause), l.timing.maxPause)
	pause := l.pause
	if _, denied := errors.AsType[*gridsite.LoginError](err); denied {
		pause = l.timing.loginPause
	}
	l.retryAt = time.Now().Add(pause + rand.N(pause/4+1))
}

// isClosed reports whether a channel that only ever gets closed has been.
func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keepAlive closes a connection that has stopped answering, so that everything that waits on it hears of that. A
// machine that loses its network, or sleeps, sends no end; TCP alone would take many minutes to notice.
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

// login logs in with the help of a person, unless a good connection stands. It dials without the turn, so that nothing
// else waits for the person, and takes the turn to bring in the result. By then another login may have succeeded: its
// connection is kept and this one closed.
func (l *link) login(ctx context.Context, ask gridsite.Asker) error {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	default:
		return corral.ErrorAt(corral.Conflict, string(l.site), "somebody is logging in already")
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

// close ends the link; it may be called while commands run, and while somebody logs in. To end life makes a login under
// way fail; the turn is then free, and no later one begins.
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
