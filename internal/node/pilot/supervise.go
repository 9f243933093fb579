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
	"github.com/corral-pilot/corral/embedded/link"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	tick        = 250 * time.Millisecond // between two looks at clock, job directory and parent
	hungLeast   = 5 * time.Second        // a worker that says nothing for so long hangs, or for two thirds of its lease
	hungCondor  = 30 * time.Second       // likewise in an HTCondor pool, whose jobs depend on no lease of corrald's
	maxLogLines = 200
)

// A supervisor runs one attempt, from its batch job's first node. It connects the parts: children say words, corrald
// asks, time goes by, the site takes the node back. Each of these events goes to the roster and the stay (package
// attempt), and then step does what they have decided. Its fields belong to the goroutine that called serve; the other
// goroutines, those of the group, the uplink and the joining, send it what they have through channels.
type supervisor struct {
	lg     *slog.Logger
	dir    string // of the job
	order  jobfiles.Order
	me     holder
	parent int // the process that started this one: the batch system's
	log    logbook

	fanout process.Fanout
	group  *process.Group
	serves map[*process.Child]*attempt.Worker
	roster *attempt.Roster
	stay   *attempt.Stay
	told   attempt.Phase // what the workers were told of the stay

	notices <-chan os.Signal // by which the batch system says that it will take the nodes back

	up      *uplink
	joining *condorworker.Joining // the HTCondor pool; nil: corrald's own
}

// serve does the whole pilot job, which began at started. What makes the node unfit ends it before anything was
// started; what only another attempt may have is reported as transient. From the watch on, all that was started is
// ended before the report is made, in this order: the searches, the processes, the scratch directory, the words to
// corrald.
func (s *supervisor) serve(ctx context.Context, started time.Time) jobfiles.Report {
	p := s.order.Pilot
	fanout, err := process.FindFanout(os.Getenv, p.Hosts, p.CPUs)
	if err != nil {
		return jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	}
	if s.fanout = fanout; len(fanout.Nodes) > 0 { // only by this name can another attempt ask not to get this node
		s.me.Host = fanout.Nodes[0]
	}
	notices := make(chan os.Signal, 1)
	signal.Notify(notices, process.Notices...)
	defer signal.Stop(notices)
	s.notices = notices
	s.stay = attempt.NewStay(started, time.Duration(p.Walltime))
	s.roster = attempt.NewRoster(s.order.Tag, *p, fanout.Nodes, s.me.Host)
	scratch := filepath.Join(s.dir, scratchDir)
	if err := errors.Join(process.AdoptOrphans(), os.MkdirAll(scratch, 0o700)); err != nil {
		return attempt.Unfit(s.me.Host, err.Error())
	}
	defer func() {
		if err := atomicfile.RemoveAll(scratch); err != nil {
			s.lg.Warn("the scratch directory was left", "error", err)
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
	s.up = newUplink(s.lg, link.Config{
		Tag: s.order.Tag, Token: p.Token, Secret: s.me.secret, Holder: s.me.ID, Host: s.me.Host, PID: os.Getpid(),
		Addresses: p.Addresses, CertDigest: p.CertDigest,
	})
	// What follows has an end that step decides about. The ways to corrald and into the pool are sought meanwhile.
	seeking, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.up.dial(seeking)
	s.watch(seeking)
	cancel()
	if left := s.group.End(); len(left) > 0 {
		s.log.note("processes that could not be killed: %v", left)
	}
	// Only now is it true that the pilot has left: nothing of it runs any longer.
	r := s.stay.Report(s.roster)
	s.say("leaving", fmt.Sprintf("%s: %s", r.Outcome, r.Reason))
	s.up.close()
	r.Log = s.log.lines
	return r
}

// findPackage prepares for workers of an HTCondor pool. A range of ports that cannot be read is noted and not used:
// without it the pilot may still reach the pool through a broker.
func (s *supervisor) findPackage(started time.Time) error {
	ports, err := condorworker.SitePorts()
	if err != nil {
		s.log.note("%v", err)
	}
	s.joining, err = condorworker.NewJoining(s.order, ports, started)
	return err
}

// watch returns when it is decided why the pilot leaves, and every worker is gone. One event after the other comes in,
// and after each of them step does what has become due.
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
			dialing = nil // nothing more comes through it
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

// step does whatever is due: it buries children, looks for a reason to leave, has the workers follow what was decided,
// and starts those that have no process. It starts none as long as something is left of an earlier worker, whose tasks
// the dispatcher may by now have given to others.
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
	case s.joining == nil && s.up.link == nil: // there is no lease yet under which workers could serve
	case s.joining != nil && s.joining.Choice == nil: // nor a way into the pool
		if s.joining.Due(now, s.up.link != nil) {
			s.joining.Begin(ctx, s.up.callBack)
		}
	case clear:
		s.start(now)
	}
}

// look looks at what only the supervisor sees. The lease stands for the job's directory: whoever removes it, as a
// cleanup job does, wants the pilot gone. A pilot in an HTCondor pool does not need a route to corrald.
func (s *supervisor) look() (see attempt.Sight) {
	_, err := os.Stat(filepath.Join(s.dir, leaseDir))
	see.DirGone, see.ParentGone = errors.Is(err, fs.ErrNotExist), os.Getppid() != s.parent
	if s.up.link == nil && s.joining == nil {
		see.Unreached = s.order.Pilot.Addresses
	}
	return see
}

// following is what a worker is told of a phase. Workers hear each phase once, when it is decided; a host that says
// hello later hears it then.
func following(p attempt.Phase) process.Ask {
	return process.Ask{Drain: p == attempt.Draining, Leave: p == attempt.Leaving}
}

// hungAfter is how long a worker may say nothing. It is killed before corrald's dispatcher, after a whole lease, gives
// its tasks to others: two processes must not do the same task at once.
func (s *supervisor) hungAfter() time.Duration {
	if s.joining == nil && s.up.link != nil {
		return max(hungLeast, 2*s.up.link.Lease()/3)
	}
	return hungCondor
}

// reached takes in the result of dialing. To be admitted is to hold the attempt's lease at corrald, and only then does
// corrald's own pool get workers: without a route they could not serve anyway. The clocks are compared at once, since
// both write times into the same records.
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
		for _, l := range s.roster.Lost { // before corrald could be told
			s.up.loseHost(l)
		}
	}
}

// command does what corrald asks. A second drain, or a drain after a leave, changes nothing.
func (s *supervisor) command(ask corral.Ask) {
	switch ask {
	case corral.AskDrain:
		s.stay.Drain(corral.OutcomeDrained, "asked to drain")
	case corral.AskCancel:
		s.stay.Leave(time.Now(), corral.OutcomeRemoved, "asked to leave")
	}
}

// takeWay takes in how the HTCondor pool reaches this node. Without a way the pilot fails; another attempt is worth it
// if the reason may pass, or may not hold on another node.
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

// say notes what became of the pilot and tells corrald: the history of the attempt has these words.
func (s *supervisor) say(phase, reason string) {
	s.log.note("%s: %s", phase, reason)
	s.up.report(phase, reason)
}

// A logbook has the lines of the report's log. It ends at maxLogLines, since what goes wrong again and again has said
// so by then, and corrald keeps every report.
type logbook struct {
	lg    *slog.Logger
	lines []string
}

// note writes a line of the report's log, and of this process's own.
func (l *logbook) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	l.lg.Info("pilot", "what", line)
	if len(l.lines) < maxLogLines {
		l.lines = append(l.lines, time.Now().UTC().Format(time.RFC3339)+" "+line)
	}
}
