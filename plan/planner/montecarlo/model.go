package montecarlo

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A Model holds the distributions of outcomes.
type Model struct {
	plan.Problem
	Spread sim.Spread  // of runtimes around their estimates, for kinds of tasks without measured errors
	Waits  float64     // factor for waits; 0: 1
	Among  *Background // other users' jobs, with which pilots compete at each site; nil: waits are drawn
	Queues Queues      // current queues of sites, where known; they take precedence over Among
	Exact  int         // number of outcomes for an exact share; 0: according to Draws
	Rough  int         // the same for a search that only compares plans and keeps their walltimes; 0: exact

	drawn *drawings       // nil: outcomes are not kept
	ctx   context.Context // context of the current operation; nil: the operation cannot be cancelled
}

// Queues maps the names of a site and a queue to the queue.
type Queues map[[2]string]*queue.Queue

// An Outcome is the result of one simulation of a plan. Cost, Held, Work and Requests cover only the requested pilots,
// not those that were already present.
type Outcome struct {
	Makespan time.Duration // until the end of the last task
	Cost     cost.Money    // as billed
	Held     time.Duration // cpus × time
	Work     time.Duration // part of Held spent on completed tasks
	Requests int           // jobs submitted to sites
	Peak     int           // cpus held at once
	Started  int           // number of requested pilots that started
	Wait     time.Duration // mean wait of started pilots
	Finished bool          // every task completed
}

// DefaultSpread is the default distribution of runtimes around their estimates: each runtime differs from its estimate
// by about a fifth, and large positive differences are more frequent than large negative ones.
var DefaultSpread = sim.Spread{Law: "lognormal", Size: 0.2}

// Scenario returns the outcome of a plan for a seed, ready for simulation.
func (m Model) Scenario(pl *plan.Plan, seed uint64) sim.Scenario {
	work := sim.WorkOf(m.Work)
	work.Clusters = m.Work.Jobs(pl.Clustering)
	s := m.chance(work, seed)
	asks := sim.AsksFor(plan.Hedged(pl.Pilots), len(s.Asks), time.Duration(plan.LeaveAfter))
	m.pace(asks, pl)
	s.Asks = append(s.Asks, asks...)
	return s
}

// pace makes the requests for the pilots of a plan depend on the progress of the run, as those of a run with the plan's
// label do, if the schedule of the tasks is known.
func (m Model) pace(asks []sim.Ask, pl *plan.Plan) {
	of := pl.Indices(m.Work)
	for k, f := range pl.Firsts()[:len(asks)] {
		q := &pl.Pilots[k]
		if q.Submit == 0 || q.Follows != nil {
			continue
		}
		asks[k].Pace.Lead = time.Duration(f.Start - q.Submit)
		for _, at := range f.Tasks {
			asks[k].Pace.First = append(asks[k].Pace.First, of(at))
		}
	}
}

// chance returns a scenario that contains the present pilots, but no requested ones.
func (m Model) chance(work execution.Spec, seed uint64) sim.Scenario {
	s := sim.Scenario{Work: work, Cluster: sim.Cluster{Cluster: m.Cluster}}
	for _, x := range m.Sites {
		draw := sim.QuantileWaits(x.Name+"/"+x.Queue, x.Quantile, seed)
		if by := m.Waits; by > 0 {
			once := draw
			draw = func(shape plan.Shape, n int) time.Duration {
				return time.Duration(by * float64(once(shape, n)))
			}
		}
		site := sim.Site{Site: x, Draw: draw}
		if q := m.Queues[[2]string{x.Name, x.Queue}]; q != nil {
			site.Batch = q
		} else if m.Among != nil {
			site.Batch = m.Among.of(x.Name+"/"+x.Queue, seed)
		}
		s.Sites = append(s.Sites, site)
	}
	m.join(&s)
	s.Bytes = func(task int) int64 { return m.Work.Task(task).Bytes }
	m.err(&s, seed)
	return s
}

// err makes a scenario's runtimes differ from their estimates: by the measured errors of a task's kind, or else by the
// assumed distribution.
func (m Model) err(s *sim.Scenario, seed uint64) {
	kind := func(task int) string { return m.Work.Task(task).Kind }
	m.Spread.Of(s, kind, seed)
	if len(m.Errors) == 0 {
		return
	}
	assumed := s.Runtime
	measured := sim.Runtimes(s.Work, func(task int) float64 {
		return m.Errors.Factor(kind(task), chance.Draw(seed, "error", m.Work.Task(task).ID))
	})
	s.Runtime = func(task, attempt int) time.Duration {
		if _, known := m.Errors[kind(task)]; known || assumed == nil {
			return measured(task, attempt)
		}
		return assumed(task, attempt)
	}
}

// Ended is like Outcomes, but the plan is completed: if its pilots leave tasks undone, further pilots of the same
// shapes are requested one at a time, the widest shape first.
//
// If ctx is cancelled, the remaining outcomes are empty.
func (m Model) Ended(ctx context.Context, pl *plan.Plan, n int, seed uint64) []Outcome {
	m.ctx = ctx
	return m.play(n, func(i int) sim.Scenario {
		s := m.Scenario(pl, stream(seed, i))
		s.Control, s.Every = m.seeTo(pl), time.Minute
		return s
	})
}

// mostAgain is the maximum number of further pilots. If this many pilots do not complete the tasks, no pilot can.
const mostAgain = 50

// seeTo returns a control that requests another pilot when no pilot is present or pending. The control cycles through
// the plan's shapes, the widest first, because the remaining tasks may not fit the first shape, and requests enough
// walltime for twice the critical path.
func (m Model) seeTo(pl *plan.Plan) sim.Control {
	var shapes []plan.Pilot
	var longest, last corral.Seconds
	for _, q := range plan.Hedged(pl.Pilots) {
		longest, last = max(longest, q.Walltime), max(last, q.Submit)
		if !slices.ContainsFunc(shapes, func(s plan.Pilot) bool {
			return s.Site == q.Site && s.Queue == q.Queue && s.Hosts == q.Hosts && s.Host() == q.Host()
		}) {
			shapes = append(shapes, q)
		}
	}
	if len(shapes) == 0 {
		return nil
	}
	path := m.Work.Graph.CriticalPath(m.Work.Runtimes())
	slices.SortStableFunc(shapes, func(a, b plan.Pilot) int { return b.HeldCPUs() - a.HeldCPUs() })
	asked := 0
	return func(now time.Duration, v sim.View) []sim.Ask {
		over := func(h sim.Held) bool { return h.End >= 0 }
		if asked == mostAgain || m.context().Err() != nil || now <= time.Duration(last) ||
			slices.ContainsFunc(v.Pilots, func(h sim.Held) bool { return !over(h) }) {
			return nil
		}
		like := shapes[asked%len(shapes)]
		like.Follows, like.Early, like.Submit = nil, false, corral.Seconds(now)
		at := m.Site(like.Site, like.Queue)
		like.Walltime = min(max(longest, corral.Seconds(at.Overhead+at.Margin+2*path)), corral.Seconds(at.Walltime))
		asked++
		return []sim.Ask{{Pilot: like, Idle: time.Duration(plan.LeaveAfter)}}
	}
}

func (m Model) play(n int, scenario func(i int) sim.Scenario) []Outcome {
	unrecorded := func(i int) sim.Scenario {
		s := scenario(i)
		s.Observe = func(execution.Record) {}
		return s
	}
	return sim.Runs(m.context(), n, runtime.GOMAXPROCS(0), unrecorded,
		func(_ int, t *sim.Trace) Outcome { return m.Of(t) })
}

func (m Model) context() context.Context {
	if m.ctx == nil {
		return context.Background()
	}
	return m.ctx
}

// stream derives the seed of the nth outcome such that neighbouring seeds do not share outcomes.
func stream(seed uint64, n int) uint64 { return seed*0x9e3779b97f4a7c15 + uint64(n)*0xbf58476d1ce4e5b9 }

// Of evaluates one simulation.
func (m Model) Of(t *sim.Trace) Outcome {
	o := Outcome{Makespan: t.Makespan(), Finished: t.Ending == sim.Done}
	o.Work = time.Duration(t.WorkOn(m.asked) * float64(time.Hour))
	var waited time.Duration
	var held []plan.Pilot
	for _, h := range t.Pilots {
		if !m.asked(h) {
			continue
		}
		if o.Requests++; h.Start >= 0 {
			o.Started++
			waited += h.Start - h.Submit
		}
		if h.For() == 0 {
			continue
		}
		q := plan.Pilot{Start: corral.Seconds(h.Start), End: corral.Seconds(h.Start + h.For()),
			Shape: corral.Shape{Hosts: h.Hosts, CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs}}
		held = append(held, q)
		_, money := m.Site(h.Site, h.Queue).Tariff.Bill(q)
		o.Cost = o.Cost.Plus(money)
		o.Held += time.Duration(h.Hosts*h.CPUs) * h.For()
	}
	o.Peak = plan.Peak(held, "")
	o.Wait = waited / time.Duration(max(1, o.Started))
	return o
}
