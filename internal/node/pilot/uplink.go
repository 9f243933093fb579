package pilot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	// redialGap is the pause between the first two attempts to reach corrald; once connected, the link reconnects
	// itself. The pause is doubled up to redialMost, because workers of an HTCondor pool may run without corrald for
	// days.
	redialGap, redialMost = time.Second, 10 * time.Second
	reportTime            = 500 * time.Millisecond // for messages to reach corrald; they must not use up the reserve
	askTime               = 10 * time.Second       // for corrald to report whether it reaches a node
)

// An uplink is a supervisor's communication with corrald. The supervisor never waits for corrald: messages are sent in
// the background, requests arrive through channels, and until corrald has been reached nothing is sent. Its methods
// must be called from the supervisor's goroutine.
type uplink struct {
	lg      *slog.Logger
	config  LinkConfig
	dialing chan dialed // closed when dialling has ended

	// The fields below are nil, or zero, until corrald has been reached.
	link     *Link
	commands <-chan corral.Ask
	callBack broker.CallBack // makes corrald dial this pilot's nodes
	ahead    time.Duration   // time by which corrald's clock is ahead

	saying  sync.WaitGroup
	lasting context.Context // for messages that are repeated until corrald has received them; cancelled by hush
	hush    context.CancelFunc
	answers chan answered
}

// dialed is the result of dialling: a link or an error.
type dialed struct {
	link *Link
	err  error
}

// answered is corrald's answer to a host that requested to be called back.
type answered struct {
	to     *process.Child
	answer process.CalledBack
}

// newUplink returns an uplink that is not connected: dial connects it.
func newUplink(lg *slog.Logger, config LinkConfig) *uplink {
	u := &uplink{lg: lg, config: config, dialing: make(chan dialed, 1), answers: make(chan answered)}
	u.lasting, u.hush = context.WithCancel(context.Background())
	return u
}

// dial tries to reach corrald until it is admitted or refused, or ctx ends. It sends the result to dialing and closes
// that channel.
func (u *uplink) dial(ctx context.Context) {
	defer close(u.dialing)
	for gap := redialGap; ; gap = min(2*gap, redialMost) {
		link, err := Dial(ctx, u.lg, u.config)
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

// use makes link the connection to corrald. The link itself reconnects when connections break.
func (u *uplink) use(link *Link) {
	u.link, u.commands, u.callBack, u.ahead = link, link.Commands(), link.CallBack, link.ClockOffset()
}

// report reports a phase of the pilot to corrald. The message is dropped if corrald cannot be reached soon; the pilot's
// report contains the same text.
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

// loseHost reports a lost host to corrald, as soon as corrald can be reached: a workflow may be waiting for all of the
// requested hosts.
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

// ask asks corrald, on behalf of a host, whether corrald can reach that host. The answer is sent to answers.
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

// close waits briefly for messages in progress, and ends the link. If the uplink is still dialling, close waits for
// that; the context of dial must have ended.
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
