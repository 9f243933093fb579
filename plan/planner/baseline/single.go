package baseline

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim"
)

// A Result is the outcome of a run with pilots of one task each.
type Result struct {
	Makespan time.Duration
	Held     time.Duration // cpus × time
	Work     time.Duration // part of Held in which tasks run
	Requests int
	Peak     int // cpus held at once
	Cost     cost.Money
}

// Single simulates a scenario with pilots that run one task each. Without placeholders each task is a batch job of its
// own, submitted when the task is ready, as in a workflow system without pilots. With placeholders (Pinchak, Lu and
// Goldenberg: Practical heterogeneous placeholder scheduling in overlay metacomputers, JSSPP 2002) at most that number
// of jobs are queued or running: each takes the first ready task when it starts, and resubmits itself while the queue
// is not empty.
//
// Waits, runtimes and the overhead are those of the scenario's first site. cpus limits the cpus held at once.
func Single(s sim.Scenario, placeholders, cpus int) Result {
	x := &single{Scenario: s, placeholders: placeholders, free: cpus, missing: make([]int, len(s.Work.Tasks)),
		events: heap.New(func(a, b event) bool { return a.at < b.at })}
	for i := range s.Work.Tasks {
		if x.missing[i] = len(s.Work.Graph.Parents(i)); x.missing[i] == 0 {
			x.ready = append(x.ready, i)
		}
	}
	x.ask(0)
	for x.events.Len() > 0 {
		e := x.events.Pop()
		if e.task >= 0 {
			x.done(e)
		} else {
			x.waiting--
			x.here++
		}
		x.start(e.at)
		x.ask(e.at)
	}
	return x.out
}

// A single is the state of one run.
type single struct {
	sim.Scenario
	placeholders int
	free         int   // free cpus of the site
	ready        []int // tasks, first come first served
	missing      []int // :: task → number of unfinished parents
	waiting      int   // queued jobs
	here         int   // started jobs without a task
	running      int
	held         int // cpus
	events       heap.Heap[event]
	out          Result
}

// An event is the end of a task or, if task is −1, the end of a job's wait.
type event struct {
	at   time.Duration
	task int
}

// ask submits a job for each ready task that has no job yet, up to the number of placeholders.
func (x *single) ask(now time.Duration) {
	for len(x.ready) > x.waiting+x.here &&
		(x.placeholders == 0 || x.waiting+x.here+x.running < x.placeholders) {
		shape := plan.Shape{Hosts: 1, Host: x.Sites[0].Host, Walltime: x.Sites[0].Walltime}
		shape.Host.CPUs = 1
		x.events.Push(event{now + x.Sites[0].Draw(shape, x.out.Requests), -1})
		x.out.Requests++
		x.waiting++
	}
}

// start assigns ready tasks to started jobs, as long as the site has enough free cpus.
func (x *single) start(now time.Duration) {
	for x.here > 0 && len(x.ready) > 0 {
		i := x.ready[0]
		task := &x.Work.Tasks[i]
		need := task.CPUs
		if need > x.free {
			return
		}
		x.ready, x.here = slices.Delete(x.ready, 0, 1), x.here-1
		x.free -= need
		x.running++
		took := task.Estimate
		if x.Runtime != nil {
			took = x.Runtime(i, 1)
		}
		if x.Speed != nil {
			took = time.Duration(float64(took) * x.Speed(sim.Host{Site: x.Sites[0].Name}))
		}
		took = x.Sites[0].Speed.Takes(took)
		held := x.Sites[0].Overhead + took
		if x.Bytes != nil {
			held += x.Sites[0].Transfer.Takes(x.Bytes(i))
		}
		x.out.Held += held * time.Duration(need)
		x.held += need
		x.out.Peak = max(x.out.Peak, x.held)
		_, money := x.Sites[0].Tariff.Bill(plan.Pilot{Shape: x.shape(task.Needs()), End: corral.Seconds(held)})
		x.out.Cost = x.out.Cost.Plus(money)
		x.out.Work += took * time.Duration(need)
		x.events.Push(event{now + held, i})
	}
	if x.placeholders > 0 && len(x.ready) == 0 {
		x.here = 0 // a placeholder without a task ends
	}
}

// shape returns the shape of a task's job, which has at least its cpus' share of a host's memory.
func (x *single) shape(needs corral.Resources) corral.Shape {
	s := corral.Shape{Hosts: 1, CPUs: needs.CPUs, MemoryMiB: needs.MemoryMiB, GPUs: needs.GPUs}
	if host := x.Sites[0].Host; host.MemoryMiB < plan.Unlimited && host.CPUs < plan.Unlimited {
		s.MemoryMiB = max(s.MemoryMiB, host.MemoryMiB*needs.CPUs/max(1, host.CPUs))
	}
	return s
}

// done ends a task and its job.
func (x *single) done(e event) {
	x.out.Makespan = max(x.out.Makespan, e.at)
	cpus := x.Work.Tasks[e.task].CPUs
	x.free, x.held = x.free+cpus, x.held-cpus
	x.running--
	for _, c := range x.Work.Graph.Children(e.task) {
		if x.missing[c]--; x.missing[c] == 0 {
			x.ready = append(x.ready, int(c))
		}
	}
}
