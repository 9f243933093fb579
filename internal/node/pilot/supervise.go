package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	tick        = 250 * time.Millisecond // between two checks of clock, job directory and parent
	hungLeast   = 5 * time.Second        // a worker hangs if it is silent for 2/3 of its lease, at least this long
	hungCondor  = 30 * time.Second       // the silence in an HTCondor pool, whose jobs depend on no lease
	maxLogLines = 200
)

// A supervisor runs one attempt, from its batch job's first node. It receives all events: words from children, requests
// from corrald, the passage of time, signals from the site. It passes each event to the roster and the stay (package
// attempt), and then step carries out their decisions. Its fields belong to the goroutine that called serve; the
// goroutines of the group, the uplink and the joining send their events through channels.
type supervisor struct {
	lg     *slog.Logger
	dir    string // the job's directory
	order  jobfiles.Order
	me     holder
	parent int // the process that started this one, part of the batch system
	log    logbook

	fanout process.Fanout
	group  *process.Group
	serves map[*process.Child]*attempt.Worker
	roster *attempt.Roster
	stay   *attempt.Stay
	told   attempt.Phase // the phase that the workers were last notified of

	notices <-chan os.Signal // signals by which the batch system announces that it will reclaim the nodes

	up      *uplink
	joining *condorworker.Joining // the HTCondor pool; nil: corrald's own cluster
}

// serve runs the whole pilot job, which began at started. An unfit node ends it before anything is started; a problem
// that another attempt may not have is reported as transient. All activities that were started are ended before the
// report is made, in this order: the searches, the processes, the scratch directory, the messages to corrald.
func (s *supervisor) serve(ctx context.Context, started time.Time) jobfiles.Report {
	p := s.order.Pilot
	fanout, err := process.FindFanout(os.Getenv, p.Hosts, p.CPUs)
	if err != nil {
		return jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	}
	if s.fanout = fanout; len(fanout.Nodes) > 0 { // another attempt can exclude this node only by this name
		s.me.Host = fanout.Nodes[0]
	}
	notices := make(chan os.Signal, 1)
	signal.Notify(notices, process.Notices...)
	defer signal.Stop(notices)
	s.notices = notices
	s.stay = attempt.NewStay(started, *p)
	s.roster = attempt.NewRoster(s.order.Tag, *p, fanout.Nodes, s.me.Host)
	scratch := filepath.Join(s.dir, scratchDir)
	if err := errors.Join(process.AdoptOrphans(), os.MkdirAll(scratch, 0o700)); err != nil {
		return attempt.Unfit(s.me.Host, err.Error())
	}
	defer func() {
		if err := atomicfile.RemoveAll(scratch); err != nil {
			s.lg.Warn("the scratch directory could not be removed", "error", err)
		}
	}()
	if err := nodecheck.Check(scratch, s.roster.Here()*p.MemoryMiB); err != nil {
		return attempt.Unfit(s.me.Host, err.Error())
	}
	if p.Condor != nil {
		if err := s.findPackage(started); err != nil {
			r := jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
			if errors.Is(err, condorworker.ErrNotInstalled) { // a setup job may install it before the next attempt
				r.Transient, r.Missing = true, p.Condor.Digest
			}
			return r
		}
		defer use(s.lg, s.joining.Release)()
		defer s.joining.Close()
	}
	s.up = newUplink(s.lg, LinkConfig{
		Tag: s.order.Tag, Token: p.Token, Secret: s.me.secret, Holder: s.me.ID, Host: s.me.Host, PID: os.Getpid(),
		Addresses: p.Addresses, CertDigest: p.CertDigest,
	})
	// The code below runs until step ends it. In the meantime, the ways to corrald and into the pool are sought.
	seeking, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.up.dial(seeking)
	s.watch(seeking)
	cancel()
	if left := s.group.End(); len(left) > 0 {
		s.log.note("processes that could not be killed: %v", left)
	}
	// Only now has the pilot left: none of its processes is running.
	r := s.stay.Report(s.roster)
	s.say("leaving", fmt.Sprintf("%s: %s", r.Outcome, r.Reason))
	s.up.close()
	r.Log = s.log.lines
	return r
}

// findPackage prepares for workers of an HTCondor pool. An invalid range of ports is logged and ignored: without it the
// pilot may still reach the pool through a broker.
func (s *supervisor) findPackage(started time.Time) error {
	ports, err := condorworker.SitePorts()
	if err != nil {
		s.log.note("%v", err)
	}
	s.joining, err = condorworker.NewJoining(s.order, ports, started)
	return err
}

// watch returns when the pilot has a reason to leave, and every worker has ended. It handles one event after another,
// and calls step after each to do the work that is due.
func (s *supervisor) watch(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	stop, dialing := ctx.Done(), s.up.dialing
	for !s.stay.Over(time.Now(), s.group.Empty()) {
		select {
		case <-children:
		case <-time.After(tick):
		case h := <-s.group.Heard():
			if w := s.serves[h.By]; s.group.Note(h) && w != nil {
				s.hear(h.By, w, *h.Word)
			}
		case d := <-dialing:
			dialing = nil // it delivers only once
			s.reached(d)
		case w := <-s.joining.Found():
			s.takeWay(w)
		case c := <-s.up.commands:
			s.command(c)
		case a := <-s.up.answers:
			a.to.Tell(process.Ask{CalledBack: &a.answer})
		case n := <-s.notices:
			s.stay.Notice(time.Now(), n.String())
		case <-stop:
			stop = nil
			s.stay.Leave(time.Now(), corral.OutcomePreempted, context.Cause(ctx).Error())
		}
		s.step(ctx, time.Now())
	}
}

// step does all work that is due: it handles the ends of children, checks for a reason to leave, passes decisions on to
// the workers, and starts workers that have no process. It starts no worker while a process of an earlier worker
// remains, because the dispatcher may by now have assigned that worker's tasks to others.
func (s *supervisor) step(ctx context.Context, now time.Time) {
	for _, c := range s.group.Collect() {
		s.bury(c)
	}
	for _, c := range s.group.KillHung(now, s.hungAfter()) {
		s.log.note("worker %s %s and is killed", s.serves[c].ID, c.Last.Error)
	}
	s.group.Beat(now)
	clear := s.group.KillStrays()
	s.stay.Consider(now, s.look(), s.roster)
	phase := s.stay.Phase()
	if phase != s.told {
		s.told = phase
		s.group.Tell(following(phase))
	}
	switch {
	case s.stay.KillDue(now):
		s.group.Kill()
	case phase != attempt.Staying:
	case s.joining == nil && s.up.link == nil: // workers could not serve without a lease
	case s.joining != nil && s.joining.Choice == nil: // nor without a way into the pool
		if s.joining.Due(now, s.up.link != nil) {
			s.joining.Begin(ctx, s.up.callBack)
		}
	case clear:
		s.start(now)
	}
}

// look checks conditions that only the supervisor can check. The lease represents the job's directory: a program that
// removes the directory, such as a cleanup job, thereby asks the pilot to end. A pilot in an HTCondor pool does not
// need a route to corrald.
func (s *supervisor) look() (see attempt.Sight) {
	_, err := os.Stat(filepath.Join(s.dir, leaseDir))
	see.DirGone, see.ParentGone = errors.Is(err, fs.ErrNotExist), os.Getppid() != s.parent
	if s.up.link == nil && s.joining == nil {
		see.Unreached = s.order.Pilot.Addresses
	}
	return see
}

// following returns the message about a phase for a worker. Workers receive the message once, when the phase is
// decided; a host that sends its hello later receives it at that time.
func following(p attempt.Phase) process.Ask {
	return process.Ask{Drain: p == attempt.Draining, Leave: p == attempt.Leaving}
}

// hungAfter returns the time for which a worker may be silent. A hung worker is killed before corrald's dispatcher
// assigns its tasks to others, which happens after a whole lease: two processes must not run the same task at once.
func (s *supervisor) hungAfter() time.Duration {
	if s.joining == nil && s.up.link != nil {
		return max(hungLeast, 2*s.up.link.Lease()/3)
	}
	return hungCondor
}

// reached handles the result of dialling. When the pilot is admitted, it holds the attempt's lease at corrald. Workers
// for corrald's own cluster are started only after that: without a route they could not serve. The clocks are compared
// at once, because both machines write times into the same records.
func (s *supervisor) reached(d dialed) {
	now := time.Now()
	switch {
	case errors.Is(d.err, wire.ErrDuplicate):
		s.stay.Leave(now, corral.OutcomeDuplicate, d.err.Error())
	case d.err != nil:
		s.stay.Fail(now, false, d.err.Error())
	case d.link != nil:
		s.up.use(d.link)
		if err := nodecheck.CheckClock(s.up.ahead); err != nil {
			s.stay.FailHere(now, s.roster, err.Error())
			return
		}
		s.say("pilot started", "on "+s.me.Host+", by "+d.link.By())
		for _, l := range s.roster.Lost { // lost before corrald was reached
			s.up.loseHost(l)
		}
	}
}

// command carries out a request of corrald. A second drain, or a drain after a leave, has no effect.
func (s *supervisor) command(ask corral.Ask) {
	switch ask {
	case corral.AskDrain:
		s.stay.Drain(corral.OutcomeDrained, "asked to drain")
	case corral.AskCancel:
		s.stay.Leave(time.Now(), corral.OutcomeRemoved, "asked to leave")
	}
}

// takeWay handles the result of measuring how the HTCondor pool reaches this node. Without a way the pilot fails;
// another attempt is worthwhile if the reason may be temporary, or may not apply to another node.
func (s *supervisor) takeWay(w condorworker.Way) {
	measured := condorworker.Measured(w.Choice)
	switch {
	case w.Err == nil:
		s.joining.Choice = &w.Choice
		s.say("broker", w.Choice.Reason+"; "+measured)
		return
	case s.stay.Phase() != attempt.Staying:
		return
	case len(w.Choice.Measured) > 0:
		s.say("broker", "no way to the pool was found; "+measured)
	}
	if corral.KindOf(w.Err) == corral.Unavailable {
		s.stay.FailHere(time.Now(), s.roster, w.Err.Error())
	} else {
		s.stay.Fail(time.Now(), false, w.Err.Error())
	}
}

// say logs a phase of the pilot and reports it to corrald: it becomes part of the attempt's history.
func (s *supervisor) say(phase, reason string) {
	s.log.note("%s: %s", phase, reason)
	s.up.report(phase, reason)
}

// A logbook holds the lines of the report's log. It is limited to maxLogLines, because that many lines document any
// recurring problem, and corrald keeps every report.
type logbook struct {
	lg    *slog.Logger
	lines []string
}

// note adds a line to the report's log, and to the log of this process.
func (l *logbook) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	l.lg.Info("pilot", "what", line)
	if len(l.lines) < maxLogLines {
		l.lines = append(l.lines, time.Now().UTC().Format(time.RFC3339)+" "+line)
	}
}
