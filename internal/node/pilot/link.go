package pilot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A LinkConfig specifies how a pilot connects to its dispatcher.
type LinkConfig struct {
	Tag, Token string   // of the attempt
	Holder     string   // identifies this pilot process uniquely
	Secret     string   // created by this process, and shared only with its workers
	Host       string   // for people
	PID        int      // likewise
	Addresses  []string // unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try
	CertDigest string   // sha256:HEX of the worker port's certificate, for tls addresses
}

// A Link keeps a pilot connected to its dispatcher until Close. Over it the pilot takes its attempt's lease, sends
// reports, receives requests to drain or leave, and requests connections back to its node.
//
// The connection is restored whenever it breaks. A report waits for a connection, and is repeated over each new one
// until it is answered; answers carry the number of the request. Each side uses heartbeats to detect that the other is
// gone.
type Link struct {
	lg     *slog.Logger
	cfg    LinkConfig
	by     string
	offset time.Duration
	lease  time.Duration

	cancel   context.CancelFunc
	done     chan struct{} // closed when the link's goroutines have ended
	commands chan corral.Ask
	heard    corral.Ask // the last one; used only by the goroutine of keep

	mu      sync.Mutex    // guards the fields below
	conn    *wire.Conn    // nil while there is no connection
	changed chan struct{} // closed and replaced when conn changes
	last    int64         // number of the last request
	answers map[int64]chan *wire.Message
}

// Dial takes the attempt's lease for cfg.Holder and keeps a connection from then on. It tries each address once. The
// error is an ErrDuplicate if another pilot has the lease, or an ErrRefused if the dispatcher rejects this one;
// otherwise there is currently no route, and Dial may be called again.
func Dial(ctx context.Context, lg *slog.Logger, cfg LinkConfig) (*Link, error) {
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

func (c LinkConfig) hello() *wire.Hello {
	return &wire.Hello{
		Version: wire.Version, Role: wire.RolePilot, Tag: c.Tag, Token: c.Token, Secret: c.Secret,
		Holder: c.Holder, Host: c.Host, PID: c.PID,
	}
}

// ClockOffset returns the time by which the dispatcher's clock was ahead of this machine's when the link was made,
// accurate to half a round trip.
func (l *Link) ClockOffset() time.Duration { return l.offset }

// By returns the address at which the dispatcher was reached when the link was made.
func (l *Link) By() string { return l.by }

// Lease returns the time for which the dispatcher's workers keep their tasks without an answer, as announced when the
// link was made.
func (l *Link) Lease() time.Duration { return l.lease }

// Commands returns the requests that the dispatcher makes to the attempt, each request once. AskCancel is always the
// last request; it is also sent if the dispatcher later refuses the pilot. The channel is never closed.
func (l *Link) Commands() <-chan corral.Ask { return l.commands }

// Report reports the state of the attempt and waits until the report is recorded, if necessary over a new connection,
// until ctx ends.
func (l *Link) Report(ctx context.Context, phase, reason string) error {
	_, err := l.ask(ctx, &wire.Message{Type: wire.TypeReport, Phase: phase, Reason: wire.Clip(reason)})
	return wrap.Errorf(err, "report %q was not recorded", phase)
}

// LoseHost reports that the attempt continues without a host and waits until this is recorded, like Report.
func (l *Link) LoseHost(ctx context.Context, lost corral.LostHost) error {
	lost.Why = wire.Clip(lost.Why)
	_, err := l.ask(ctx, &wire.Message{Type: wire.TypeLost, Lost: &lost})
	return wrap.Errorf(err, "the loss was not recorded (%s)", lost)
}

// CallBack makes the dispatcher's machine dial addresses, and returns the address that was reached. Each address is the
// IP:PORT of a listener that sends nonce and a newline to each client. An error of kind corral.Failed means that all
// were dialled without success, and describes the result for each address. The dispatcher's machine is also the
// schedd's if corrald runs the pool itself; for an attached pool it is tested in place of the schedd's machine.
func (l *Link) CallBack(ctx context.Context, addresses []string, nonce string) (reached string, err error) {
	answer, err := l.ask(ctx, &wire.Message{Type: wire.TypeCallBack, Addresses: addresses, Nonce: nonce})
	if err != nil {
		return "", err
	}
	return answer.Addresses[0], nil
}

// ask sends m and waits for its answer, if necessary over a new connection, until ctx ends. An answer with a kind is
// returned as an error. A message sent over a connection that broke may have arrived, so repeated messages must be
// harmless.
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

// forget stops waiting for an answer.
func (l *Link) forget(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.answers, n)
}

// Close sends a bye message and ends the link. It may be called more than once.
func (l *Link) Close() error {
	l.cancel()
	<-l.done
	return nil
}

// keep serves one connection after another until ctx ends or the dispatcher refuses the pilot.
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
				l.lg.Warn("dispatcher refused the pilot", "tag", l.cfg.Tag, "error", err)
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
		_ = g.Net.SetReadDeadline(time.Now().Add(10 * heartbeat)) // each heartbeat is answered
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

// beat sends heartbeats; when ctx ends it sends a bye message, which ends the connection.
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

// use sets the connection, nil for none, and wakes the goroutines that wait for one.
func (l *Link) use(c *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
	close(l.changed)
	l.changed = make(chan struct{})
}

// answered passes an answer to the call of ask that waits for it, if any.
func (l *Link) answered(m *wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.answers[m.N]; answer != nil {
		select {
		case answer <- m:
		default: // a second answer to a repeated request
		}
	}
}

// command passes a command on, unless the pilot has already received it: the port repeats the command over each new
// connection. The channel always has room, because there are at most two commands: drain, then leave.
func (l *Link) command(ask corral.Ask) {
	if l.heard == corral.AskCancel || l.heard == ask {
		return
	}
	l.heard = ask
	l.commands <- ask
}
