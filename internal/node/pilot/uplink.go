package pilot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/embedded/link"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	// redialGap is between two attempts to reach corrald for the first time; later the link sees to that. It doubles up
	// to redialMost, because workers of an HTCondor pool may do without corrald for days.
	redialGap, redialMost = time.Second, 10 * time.Second
	reportTime            = 500 * time.Millisecond // for words to reach corrald; they must not use up the reserve
	askTime               = 10 * time.Second       // for corrald to say whether it reaches a node
)

// An uplink is a supervisor's conversation with corrald. The supervisor never waits for corrald: what it says goes out
// in the background, what it hears comes through channels, and until corrald has been reached it says nothing. Its
// methods belong to the supervisor's goroutine.
type uplink struct {
	lg      *slog.Logger
	config  link.Config
	dialing chan dialed // closed when dialing is over

	// What follows is nil, or zero, until corrald has been reached.
	link     *link.Link
	commands <-chan corral.Ask
	callBack broker.CallBack // has corrald dial this pilot's nodes
	ahead    time.Duration   // of corrald's clock

	saying  sync.WaitGroup
	lasting context.Context // of what is said until corrald has heard it; ended by hush
	hush    context.CancelFunc
	answers chan answered
}

// dialed is the end of dialing: a link, or why there is none.
type dialed struct {
	link *link.Link
	err  error
}

// answered is corrald's answer to a host that wants to be called back.
type answered struct {
	to     *process.Child
	answer process.CalledBack
}

// newUplink makes a conversation that has not begun: dial begins it.
func newUplink(lg *slog.Logger, config link.Config) *uplink {
	u := &uplink{lg: lg, config: config, dialing: make(chan dialed, 1), answers: make(chan answered)}
	u.lasting, u.hush = context.WithCancel(context.Background())
	return u
}

// dial tries to reach corrald until it is admitted or refused, or ctx ends. The result comes through dialing, which is
// closed then.
func (u *uplink) dial(ctx context.Context) {
	defer close(u.dialing)
	for gap := redialGap; ; gap = min(2*gap, redialMost) {
		link, err := link.Dial(ctx, u.lg, u.config)
		if err == nil || errors.Is(err, wire.ErrRefused) {
			u.dialing <- dialed{link, err}
			return
		}
		u.lg.Warn("no route to corrald yet", "error", err)
		if !retry.For(ctx, gap) {
			return
		}
	}
}

// use makes a link the way to corrald. The link itself sees to it that it lasts, whatever becomes of connections.
func (u *uplink) use(link *link.Link) {
	u.link, u.commands, u.callBack, u.ahead = link, link.Commands(), link.CallBack, link.ClockOffset()
}

// report tells corrald a phase of the pilot. It is lost if corrald cannot be reached soon; the pilot's report has the
// same words.
func (u *uplink) report(phase, reason string) {
	if u.link == nil {
		return
	}
	u.saying.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), reportTime)
		defer cancel()
		if err := u.link.Report(ctx, phase, reason); err != nil {
			u.lg.Info("corrald was not told", "phase", phase, "error", err)
		}
	})
}

// loseHost tells corrald of a host that is lost, as soon as corrald can be reached: a workflow may be waiting for as
// many hosts as were asked for.
func (u *uplink) loseHost(l corral.LostHost) {
	if u.link == nil {
		return
	}
	u.saying.Go(func() {
		if err := u.link.LoseHost(u.lasting, l); err != nil {
			u.lg.Info("corrald was not told", "lost", l, "error", err)
		}
	})
}

// ask asks for a host whether corrald reaches it. The answer comes through answers.
func (u *uplink) ask(by *process.Child, q process.CallBack, ask broker.CallBack) {
	u.saying.Go(func() {
		ctx, cancel := context.WithTimeout(u.lasting, askTime)
		defer cancel()
		reached, err := ask(ctx, q.Addresses, q.Nonce)
		a := process.CalledBack{Nonce: q.Nonce, Reached: reached}
		if err != nil {
			a = process.CalledBack{Nonce: q.Nonce, Kind: corral.KindOf(err), Reason: err.Error()}
		}
		select {
		case u.answers <- answered{by, a}:
		case <-u.lasting.Done():
		}
	})
}

// close waits a moment for what is still being said, and ends the link, or the attempt to make one, whose context must
// have ended.
func (u *uplink) close() {
	for d := range u.dialing {
		if d.link != nil && d.link != u.link {
			d.link.Close()
		}
	}
	patience := time.AfterFunc(reportTime, u.hush)
	u.saying.Wait()
	patience.Stop()
	u.hush()
	if u.link != nil {
		u.link.Close()
	}
}
