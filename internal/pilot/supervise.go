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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

const (
	tick        = 250 * time.Millisecond // between two looks at clock, job directory and parent
	grace       = 2 * time.Second        // from telling workers to leave now until they are killed
	reportTime  = 500 * time.Millisecond // for words to reach corrald; the walltime's reserve must last
	routeWait   = 5 * time.Minute        // for corrald to answer at first, at most half of the walltime
	awayAfter   = 3 * time.Second        // without word of an idle worker it has lost its dispatcher
	hungLeast   = 5 * time.Second        // without a word of a worker it hangs: this, or two thirds of the lease if that is longer
	hungCondor  = 30 * time.Second       // likewise, in an HTCondor pool: its jobs hang on no lease of ours
	restartGap  = time.Second            // between two starts of the same worker
	maxDeaths   = 3                      // restarts in a row of a worker that did not register in between
	maxLogLines = 200
)

// A departure is the decision to leave.
type departure struct {
	outcome   corral.Outcome
	transient bool
	reason    string
	killAt    time.Time // kill the workers that are still there; zero: they may finish their tasks
}

// A supervisor runs one attempt on one node. Its fields belong to the goroutine that called serve.
type supervisor struct {
	lg    *slog.Logger
	dir   string
	root  string // of the site
	tag   string
	order order.Pilot
	me    holder

	fanout  process.Fanout
	lost    []corral.LostHost
	answers chan answered

	parent  int       // the process that started us; the batch system's
	end     time.Time // the workers must have left; the reserve follows
	routeBy time.Time // corrald must have answered
	link    *pool.Link
	seeking context.Context       // bounds the search for ways to corrald and into a pool
	joining *condorworker.Joining // the HTCondor pool; nil: corrald's own
	workers []*worker
	group   *process.Group
	going   *departure // nil while we stay
	log     []string

	done chan struct{} // closed when nobody receives from answers any more

	saying  sync.WaitGroup     // to corrald
	telling context.Context    // of what corrald must know
	hush    context.CancelFunc // ends it
}

func newSupervisor(lg *slog.Logger, dir string, o order.Order, me holder) *supervisor {
	s := &supervisor{lg: lg, dir: dir, root: o.Root, tag: o.Tag, order: *o.Pilot, me: me, parent: os.Getppid(),
		group: process.NewGroup(), done: make(chan struct{}), answers: make(chan answered)}
	s.telling, s.hush = context.WithCancel(context.Background())
	return s
}

// assign says which node has which worker: without nodes of a batch system all are here.
func (s *supervisor) assign(f process.Fanout) {
	s.fanout = f
	if len(f.Nodes) > 0 { // else others could not be told to avoid it
		s.me.Host = f.Nodes[0]
	}
	for i := range s.order.Hosts {
		w := &worker{number: i, id: fmt.Sprintf("%s/%d", s.tag, i)}
		switch {
		case i == 0 || len(f.Nodes) < 2:
		case i < len(f.Nodes):
			w.node = f.Nodes[i]
		default:
			s.lost = append(s.lost, corral.LostHost{Host: i, Why: fmt.Sprintf("the batch system gave %d nodes for %d hosts", len(f.Nodes), s.order.Hosts)})
			continue
		}
		s.workers = append(s.workers, w)
	}
}

// memoryHere is how much memory the workers of this node take.
func (s *supervisor) memoryHere() int {
	mib := 0
	for _, w := range s.workers {
		if w.node == "" {
			mib += s.order.MemoryMiB
		}
	}
	return mib
}

// serve does the whole pilot job, which began at started.
func (s *supervisor) serve(ctx context.Context, o order.Order, started time.Time) order.Report {
	walltime := time.Duration(s.order.Walltime)
	s.end = started.Add(walltime - order.Reserve(walltime))
	s.routeBy = started.Add(min(routeWait, walltime/2))
	f, err := process.FindFanout(os.Getenv, s.order.Hosts, s.order.CPUs)
	if err != nil {
		return order.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	}
	s.assign(f)
	scratch := filepath.Join(s.dir, scratchDir)
	if err := errors.Join(process.AdoptOrphans(), os.MkdirAll(scratch, 0o700)); err != nil {
		return unfit(s.me, err)
	}
	defer func() {
		if err := disk.RemoveAll(scratch); err != nil {
			s.lg.Warn("the scratch directory was left", "error", err)
		}
	}()
	if err := node.Check(scratch, s.memoryHere()); err != nil {
		return unfit(s.me, err)
	}
	seeking, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.order.Condor != nil {
		ports, err := condorworker.SitePorts()
		if err != nil {
			s.note("%v", err)
		}
		if s.joining, err = condorworker.NewJoining(o, ports, started); err != nil {
			return s.unprepared(err)
		}
		defer use(s.lg, s.joining.Release)()
		defer s.joining.Close()
	}
	pending := s.dial(seeking)
	s.seeking = seeking
	s.watch(ctx, pending)
	cancel()
	s.endChildren()
	s.sumUp()
	s.say("leaving", fmt.Sprintf("%s: %s", s.going.outcome, s.going.reason))
	s.hangUp(pending)
	return order.Report{Outcome: s.going.outcome, Transient: s.going.transient, Reason: s.going.reason, Lost: s.lost, Log: s.log}
}

// watch returns when it is decided why we leave, and every worker is gone.
func (s *supervisor) watch(ctx context.Context, pending <-chan dialed) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	stop := ctx.Done()
	for !s.over(time.Now()) {
		select {
		case <-children:
		case <-ticker.C:
		case h := <-s.group.Heard():
			s.hear(h)
		case d := <-pending:
			pending = nil // closed: there is nothing more to come
			s.connected(d)
		case w := <-s.joining.Found():
			s.takeWay(w)
		case c := <-s.commands():
			s.command(c)
		case a := <-s.answers:
			a.to.Tell(process.Ask{CalledBack: &a.answer})
		case <-stop:
			stop = nil
			s.leaveNow(corral.OutcomePreempted, context.Cause(ctx).Error())
		}
		s.step(time.Now())
	}
}

// step does whatever is due.
func (s *supervisor) step(now time.Time) {
	s.collect()
	s.killHung(now)
	s.group.Beat(now)
	clear := s.group.KillStrays()
	s.consider(now)
	if s.going == nil {
		s.seekPool(now)
		if clear {
			s.startWorkers(now)
		}
	} else if k := s.going.killAt; !k.IsZero() && now.After(k) {
		s.group.Kill()
	}
}

// consider looks for a reason to leave.
func (s *supervisor) consider(now time.Time) {
	if s.going != nil && !s.going.killAt.IsZero() {
		return
	}
	_, err := os.Stat(filepath.Join(s.dir, leaseDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.leaveNow(corral.OutcomePreempted, "the job's directory is gone")
	case os.Getppid() != s.parent:
		s.leaveNow(corral.OutcomePreempted, "the process that started the pilot is gone")
	case s.link == nil && s.joining == nil && now.After(s.routeBy):
		s.failHere("no route to corrald at " + strings.Join(s.order.Addresses, ", "))
	case !now.Before(s.end):
		s.leaveNow(corral.OutcomeExpired, "the walltime is over")
	case s.going == nil && s.allLeft():
		s.conclude()
	case s.going == nil && s.idle(now):
		s.drain(corral.OutcomeIdle, "no task for "+s.order.Idle.String())
	}
}

// drain decides to leave when the tasks that run are finished.
func (s *supervisor) drain(o corral.Outcome, reason string) {
	if s.going != nil {
		return
	}
	s.going = &departure{outcome: o, reason: reason}
	s.group.Tell(process.Ask{Drain: true})
}

// leaveNow decides to leave at once. A pilot that was draining keeps its outcome at the end of its
// time, for that is what was asked of it.
func (s *supervisor) leaveNow(o corral.Outcome, reason string) {
	d := departure{outcome: o, reason: reason, killAt: time.Now().Add(grace)}
	if s.going != nil && !s.going.killAt.IsZero() {
		return
	}
	if s.going != nil && o == corral.OutcomeExpired {
		d.outcome, d.reason = s.going.outcome, s.going.reason+"; what still ran was cut at the end of the walltime"
	}
	if o == corral.OutcomeExpired {
		d.killAt = time.Now().Add(order.Reserve(time.Duration(s.order.Walltime)) / 2)
	}
	s.going = &d
	s.group.Tell(process.Ask{Leave: true})
}

func (s *supervisor) fail(transient bool, reason string) {
	s.leaveNow(corral.OutcomeFailed, reason)
	s.going.transient = transient
}

// failHere is fail for something that another node may have.
func (s *supervisor) failHere(why string) {
	r := unfit(s.me, errors.New(why))
	s.lost = r.Lost
	s.fail(r.Transient, r.Reason)
}

// over reports whether we leave and nothing keeps us. What cannot be killed, because it hangs in the
// kernel, keeps us no longer than SweepTime: the report matters more.
func (s *supervisor) over(now time.Time) bool {
	if s.going == nil {
		return false
	}
	k := s.going.killAt
	return s.group.Empty() || !k.IsZero() && now.After(k.Add(process.SweepTime))
}

// endChildren kills what is left of our descendants.
func (s *supervisor) endChildren() {
	close(s.done)
	if left := s.group.End(); len(left) > 0 {
		s.note("processes that could not be killed: %v", left)
	}
}

// note writes a line of the report's log, and of our own.
func (s *supervisor) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.lg.Info("pilot", "what", line)
	if len(s.log) < maxLogLines {
		s.log = append(s.log, time.Now().UTC().Format(time.RFC3339)+" "+line)
	}
}
