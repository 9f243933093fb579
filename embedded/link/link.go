// Package link is a pilot's connection to the worker port: by it the pilot takes its attempt's lease, reports, hears
// that it shall drain or leave, and has its node called back.
//
// The connection is made again whenever it breaks. A report waits for that, and is repeated over each new connection
// until it is answered; answers are told apart by the numbers of what was asked. Each side finds out by heartbeats that
// the other is gone.
package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
)

// A Config is what a pilot needs to reach its dispatcher.
type Config struct {
	Tag, Token string   // of the attempt
	Holder     string   // names this pilot process and no other
	Secret     string   // that this process has made, and only its workers share
	Host       string   // for people
	PID        int      // likewise
	Addresses  []string // unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try
	CertDigest string   // sha256:HEX of the worker port's certificate, for tls addresses
}

// A Link connects a pilot with its dispatcher, again and again until Close.
type Link struct {
	lg     *slog.Logger
	cfg    Config
	by     string
	offset time.Duration
	lease  time.Duration

	cancel   context.CancelFunc
	done     chan struct{} // closed when the link's goroutines are gone
	commands chan corral.Ask
	heard    corral.Ask // the last one; belongs to the goroutine of keep

	mu      sync.Mutex    // guards what follows
	conn    *wire.Conn    // nil while there is none
	changed chan struct{} // closed and replaced when conn changes
	last    int64         // number of what was asked last
	answers map[int64]chan *wire.Message
}

// Dial takes the attempt's lease for cfg.Holder and keeps a connection from then on. It tries each
// address once. The error is an ErrDuplicate if another pilot has the lease, an ErrRefused if the
// dispatcher does not want this one; else there is no route now, and it may be called again.
func Dial(ctx context.Context, lg *slog.Logger, cfg Config) (*Link, error) {
	g, err := wire.Dial(ctx, cfg.Addresses, cfg.CertDigest, cfg.hello())
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	l := &Link{
		lg: lg, cfg: cfg, by: g.By, cancel: cancel, done: make(chan struct{}),
		offset:   g.Terms.Now.Sub(g.SentAt.Add(g.GotAt.Sub(g.SentAt) / 2)),
		lease:    time.Duration(g.Terms.LeaseMS) * time.Millisecond,
		commands: make(chan corral.Ask, 2), changed: make(chan struct{}), answers: map[int64]chan *wire.Message{},
	}
	go l.keep(life, g)
	return l, nil
}

func (c Config) hello() *wire.Hello {
	return &wire.Hello{
		Version: wire.Version, Role: wire.RolePilot, Tag: c.Tag, Token: c.Token, Secret: c.Secret,
		Holder: c.Holder, Host: c.Host, PID: c.PID,
	}
}

// ClockOffset is how far the dispatcher's clock was ahead of this one's when the link was made, as
// exactly as half a round trip.
func (l *Link) ClockOffset() time.Duration { return l.offset }

// By is the address at which the dispatcher was reached when the link was made.
func (l *Link) By() string { return l.by }

// Lease is how long workers of the dispatcher keep their tasks without an answer, as it said when the
// link was made.
func (l *Link) Lease() time.Duration { return l.lease }

// Commands returns what the dispatcher asks of the attempt, each ask once; nothing follows AskCancel, which is also
// what a pilot hears that the dispatcher refuses later on. The channel is never closed.
func (l *Link) Commands() <-chan corral.Ask { return l.commands }

// Report tells how the attempt is doing and waits until that is recorded, over a new connection if
// must be, for as long as ctx lasts.
func (l *Link) Report(ctx context.Context, phase, reason string) error {
	_, err := l.ask(ctx, &wire.Message{Type: wire.TypeReport, Phase: phase, Reason: wire.Clip(reason)})
	if err != nil {
		return fmt.Errorf("report %q was not recorded: %w", phase, err)
	}
	return nil
}

// LoseHost tells that the attempt goes on without a host and waits until that is recorded, as Report does.
func (l *Link) LoseHost(ctx context.Context, lost corral.LostHost) error {
	lost.Why = wire.Clip(lost.Why)
	if _, err := l.ask(ctx, &wire.Message{Type: wire.TypeLost, Lost: &lost}); err != nil {
		return fmt.Errorf("that %s was not recorded: %w", lost, err)
	}
	return nil
}

// CallBack has the dispatcher's machine dial addresses, each IP:PORT of a listener that sends nonce and a
// newline to whoever connects, and returns the one that was reached. An error of kind corral.Failed says
// that they were dialled and none was reached, and what became of each. That machine is also the schedd's
// if corrald runs the pool itself; for an attached pool it stands in for the schedd's.
func (l *Link) CallBack(ctx context.Context, addresses []string, nonce string) (reached string, err error) {
	answer, err := l.ask(ctx, &wire.Message{Type: wire.TypeCallBack, Addresses: addresses, Nonce: nonce})
	if err != nil {
		return "", err
	}
	return answer.Addresses[0], nil
}

// ask sends m and waits for its answer, over a new connection if must be, for as long as ctx lasts. An answer with a
// kind is the error. What was sent over a connection that broke may have arrived; so it must do no harm to say it
// twice.
func (l *Link) ask(ctx context.Context, m *wire.Message) (*wire.Message, error) {
	l.mu.Lock()
	l.last++
	m.N = l.last
	answer := make(chan *wire.Message, 1)
	l.answers[m.N] = answer
	l.mu.Unlock()
	defer l.forget(m.N)
	for {
		l.mu.Lock()
		changed := l.changed
		if l.conn != nil {
			l.conn.Send(m)
		}
		l.mu.Unlock()
		select {
		case a := <-answer:
			if a.Kind != "" {
				return nil, corral.Errorf(a.Kind, "%s", a.Reason)
			}
			return a, nil
		case <-changed:
		case <-l.done:
			return nil, corral.Errorf(corral.Unavailable, "the link is closed")
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the answer: %w", ctx.Err())
		}
	}
}

// forget no longer expects an answer.
func (l *Link) forget(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.answers, n)
}

// Close says goodbye and ends the link. It may be called more than once.
func (l *Link) Close() error {
	l.cancel()
	<-l.done
	return nil
}

// keep serves one connection after the other until ctx ends or the dispatcher refuses.
func (l *Link) keep(ctx context.Context, g *wire.Greeting) {
	defer close(l.done)
	var b wire.Backoff
	for {
		began := time.Now()
		l.serve(ctx, g)
		b.Forgive(time.Since(began))
		for g = nil; g == nil; {
			if !b.Wait(ctx) {
				return
			}
			var err error
			g, err = wire.Dial(ctx, l.cfg.Addresses, l.cfg.CertDigest, l.cfg.hello())
			if errors.Is(err, wire.ErrRefused) {
				l.lg.Warn("pilot is not wanted any more", "tag", l.cfg.Tag, "error", err)
				l.command(corral.AskCancel)
				return
			}
		}
	}
}

// serve uses one connection until it breaks or ctx ends.
func (l *Link) serve(ctx context.Context, g *wire.Greeting) {
	l.use(g.Conn)
	heartbeat := time.Duration(g.Terms.HeartbeatMS) * time.Millisecond
	var beats sync.WaitGroup
	quit := make(chan struct{})
	beats.Go(func() { l.beat(ctx, g.Conn, heartbeat, quit) })
	for {
		_ = g.Net.SetReadDeadline(time.Now().Add(10 * heartbeat)) // each beat is answered
		m, err := g.Recv(wire.MaxFrame)
		if err != nil {
			break
		}
		switch m.Type {
		case wire.TypeDrain:
			l.command(corral.AskDrain)
		case wire.TypeLeave:
			l.command(corral.AskCancel)
		case wire.TypeReported, wire.TypeCalled:
			l.answered(m)
		}
	}
	close(quit)
	beats.Wait()
	l.use(nil)
	g.Close()
}

// beat sends heartbeats; when ctx ends it says goodbye, which ends the connection.
func (l *Link) beat(ctx context.Context, c *wire.Conn, every time.Duration, quit <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.Send(&wire.Message{Type: wire.TypeHeartbeat})
		case <-ctx.Done():
			c.Send(&wire.Message{Type: wire.TypeBye, Reason: "the pilot ends"})
			c.Finish()
			return
		case <-quit:
			return
		}
	}
}

// use makes c the connection, nil for none, and wakes those who wait for one.
func (l *Link) use(c *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
	close(l.changed)
	l.changed = make(chan struct{})
}

// answered hands an answer to whoever asked, if that still waits.
func (l *Link) answered(m *wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.answers[m.N]; answer != nil {
		select {
		case answer <- m:
		default: // a second answer to what was sent twice
		}
	}
}

// command passes a command on, unless the pilot heard it before: the port repeats it over each new connection.
// There is always room, since only leave follows drain.
func (l *Link) command(ask corral.Ask) {
	if l.heard == corral.AskCancel || l.heard == ask {
		return
	}
	l.heard = ask
	l.commands <- ask
}
