package pilot

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

// Between two attempts to reach corrald for the first time; later the link sees to that. The gap doubles: a worker
// of an HTCondor pool may do without corrald for days.
const redialGap, redialMost = time.Second, 10 * time.Second

// dialed is the end of dialing: a link, or why there is none.
type dialed struct {
	link *pool.Link
	err  error
}

// dial tries to reach corrald until it is admitted or refused, or ctx ends, and then closes the
// channel.
func (s *supervisor) dial(ctx context.Context) <-chan dialed {
	result := make(chan dialed, 1)
	go func() {
		defer close(result)
		link, err := s.dialOnce(ctx)
		for gap := redialGap; err != nil && !errors.Is(err, pool.ErrRefused); gap = min(2*gap, redialMost) {
			s.lg.Warn("no route to corrald yet", "error", err)
			retry := time.NewTimer(gap)
			select {
			case <-ctx.Done():
				retry.Stop()
				return
			case <-retry.C:
			}
			link, err = s.dialOnce(ctx)
		}
		result <- dialed{link, err}
	}()
	return result
}

func (s *supervisor) dialOnce(ctx context.Context) (*pool.Link, error) {
	return pool.DialPilot(ctx, s.lg, pool.PilotConfig{
		Tag: s.tag, Token: s.order.Token, Holder: s.me.ID, Host: s.me.Host, PID: os.Getpid(),
		Addresses: s.order.Addresses, CertDigest: s.order.CertDigest,
	})
}

// connected takes in the result of dialing. To be admitted is to hold the attempt's lease at corrald,
// and only then are workers started: without a route they could not serve anyway.
func (s *supervisor) connected(d dialed) {
	switch {
	case errors.Is(d.err, pool.ErrDuplicate):
		s.leaveNow(corral.OutcomeDuplicate, d.err.Error())
	case d.err != nil:
		s.fail(false, d.err.Error())
	case d.link != nil:
		s.link = d.link
		if err := node.CheckClock(d.link.ClockOffset()); err != nil {
			s.failHere(err.Error())
			return
		}
		s.say("pilot started", "on "+s.me.Host+", by "+s.link.By())
		for _, l := range s.lost { // before there was anybody to be told
			s.tellLoss(l)
		}
	}
}

// commands returns what corrald asks of us; nil while there is no link.
func (s *supervisor) commands() <-chan pool.Command {
	if s.link == nil {
		return nil
	}
	return s.link.Commands()
}

func (s *supervisor) command(c pool.Command) {
	switch c {
	case pool.CommandDrain:
		s.drain(corral.OutcomeDrained, "asked to drain")
	case pool.CommandLeave:
		s.leaveNow(corral.OutcomeRemoved, "asked to leave")
	}
}

// say notes a phase and tells corrald of it, if it can be reached. Nobody waits for the answer until
// the pilot ends: the report has the same words.
func (s *supervisor) say(phase, reason string) {
	s.note("%s: %s", phase, reason)
	if s.link == nil {
		return
	}
	s.saying.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), reportTime)
		defer cancel()
		if err := s.link.Report(ctx, phase, reason); err != nil {
			s.lg.Info("corrald was not told", "phase", phase, "error", err)
		}
	})
}

// tellLoss tells corrald of a host that is lost, as soon as it can be reached: somebody may wait for the host.
func (s *supervisor) tellLoss(l corral.LostHost) {
	if s.link == nil {
		return
	}
	s.saying.Go(func() {
		if err := s.link.LoseHost(s.telling, l); err != nil {
			s.lg.Info("corrald was not told", "lost", l, "error", err)
		}
	})
}

// hangUp ends the link, or the attempt to make one.
func (s *supervisor) hangUp(pending <-chan dialed) {
	for d := range pending {
		if d.link != nil && d.link != s.link {
			d.link.Close()
		}
	}
	patience := time.AfterFunc(reportTime, s.hush)
	s.saying.Wait()
	patience.Stop()
	s.hush()
	if s.link != nil {
		s.link.Close()
	}
}

// departures is what becomes of a pilot whose workers left of their own accord, by their word.
var departures = map[string]departure{
	string(pool.LeaveExpired): {outcome: corral.OutcomeExpired, reason: "the walltime is over"},
	string(pool.LeaveDrained): {outcome: corral.OutcomeDrained, reason: "asked to drain"},
	string(pool.LeaveAsked):   {outcome: corral.OutcomeRemoved, reason: "asked to leave"},
	process.LeftTerminated:    {outcome: corral.OutcomePreempted, reason: "a signal ended the workers"},
}
