package stream

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

const (
	// linger is how long worker jobs are kept after the last run has ended, because a script may start another run.
	linger = 3 * time.Second
	// surplus is how long a worker job may wait for its slot although no task waits for a worker, or although the job's
	// glidein is missing. Both may occur briefly, between two levels of a workflow and after corrald's start.
	surplus = 10 * time.Second
	// overdue is how long a worker job that waits for its slot, or is about to connect, counts as coming. After that,
	// other worker jobs are requested elsewhere.
	overdue = 30 * time.Second
	// least is the minimum remaining time of a glidein for which a worker job is worthwhile.
	least = 20 * time.Second
	// patience is how long a task waits for a worker job larger than the existing ones before a glidein is cleared for
	// that task.
	patience = 10 * time.Second
	// restMost is the maximum pause after worker jobs that ended without having connected.
	restMost = time.Minute
)

// A World is the state of a stream at one moment.
type World struct {
	Runs      int       // number of attached runs
	AloneFrom time.Time // since when there have been no attached runs
	Priority  int64     // priority of the worker jobs for the most urgent run
	RestUntil time.Time // no worker job is submitted before this time
	StuckFrom time.Time // since when a task has been Stuck; zero: no task is

	Waiting []matching.Class // tasks that are not assigned to any worker, the most urgent first
	Behind  int              // CPUs for tasks that wait at a worker behind others

	Glideins []corral.Worker // the pool's workers, with the resources that are free according to HTCondor
	Workers  []corral.Worker // connected workers, one for each running worker job
	Absent   []string        // ids of workers without a connection
	Jobs     []WorkerJob     // in the schedd's queue
}

// A State is the state of a worker job.
type State uint8

const (
	Idle    State = iota // waiting for its slot
	Running              // its program is running or about to start
	Held                 // held by HTCondor for a reason of its own
	Parked               // held by the user, who may release it
	Leaving              // removed, but the slot is not free yet
)

// A WorkerJob is a worker job in the schedd's queue.
type WorkerJob struct {
	ID       eventlog.JobID
	Number   int64
	Glidein  string // the only pool worker on which the job can run
	State    State
	CPUs     int // requested or allocated
	Priority int64

	MemoryMiB, GPUs int // likewise, if the queue shows them

	Hold  string    // reason of the hold
	Since time.Time // start of its state
}

// A Deed is a kind of order.
type Deed uint8

const (
	Start  Deed = iota // submit a worker job
	Remove             // remove the worker job from the queue
	Rank               // set the worker job's priority to the World's
	Retire             // let the worker job finish its tasks and end
	Bury               // reclaim the tasks of a worker that ended silently
)

// An Order is an action to be performed now.
type Order struct {
	Deed Deed
	Job  WorkerJob // for a Start only Glidein, CPUs and Priority; for a Retire only Glidein and Number
	Why  string    // reason of a removal

	Worker string // the worker, for a Bury

	Need corral.Resources // for a Start: the slot's minimum resources, which a waiting task needs
}

// Decide returns the actions for the worker jobs of a stream. It must be called with current data: the next World shows
// the result of each executed order, so an order is not repeated.
func Decide(now time.Time, w World) (orders []Order) {
	if w.Runs == 0 {
		if now.Before(w.AloneFrom.Add(linger)) {
			return nil
		}
		return removals(w.Jobs, "no run is left", func(WorkerJob) bool { return true })
	}
	there := map[string]bool{}
	for _, g := range w.Glideins {
		there[g.ID] = g.Connected && !g.Draining
	}
	want := w.demand()
	orders = removals(w.Jobs, "HTCondor holds it", func(j WorkerJob) bool { return j.State == Held })
	orders = append(orders, removals(w.Jobs, "its glidein is gone", func(j WorkerJob) bool {
		return j.State == Idle && !there[j.Glidein] && now.Sub(j.Since) > surplus
	})...)
	orders = append(orders, removals(w.Jobs, "nothing waits for it", func(j WorkerJob) bool {
		return j.State == Idle && there[j.Glidein] && want == 0 && now.Sub(j.Since) > surplus
	})...)
	for _, j := range w.Jobs {
		if j.State == Idle && j.Priority < w.Priority && there[j.Glidein] {
			orders = append(orders, Order{Deed: Rank, Job: j})
		}
	}
	orders = append(append(orders, w.burials()...), w.retirements(now)...)
	if now.Before(w.RestUntil) {
		return orders
	}
	return append(orders, w.starts(now, want)...)
}

// removals returns orders to remove the jobs that match. A job in state Leaving has already been removed.
func removals(jobs []WorkerJob, why string, is func(WorkerJob) bool) (orders []Order) {
	for _, j := range jobs {
		if j.State != Leaving && is(j) {
			orders = append(orders, Order{Deed: Remove, Job: j, Why: why})
		}
	}
	return orders
}

// demand returns the number of CPUs that could be used in addition to those of the existing workers: by tasks that are
// not assigned to a worker, and by tasks that wait at a worker behind other tasks.
func (w *World) demand() (cpus int) {
	for _, c := range w.Waiting {
		cpus += c.Jobs * max(1, c.Needs.CPUs)
	}
	return cpus + w.Behind
}

// burials returns orders for workers without a connection whose worker job has left the queue: HTCondor has ended
// their processes. While a job is in the queue its worker may reconnect until its lease expires.
func (w *World) burials() (orders []Order) {
	for _, id := range w.Absent {
		same := func(j WorkerJob) bool { return jobfiles.StreamWorker(j.Glidein, j.Number) == id }
		if !slices.ContainsFunc(w.Jobs, same) {
			orders = append(orders, Order{Deed: Bury, Worker: id})
		}
	}
	return orders
}

// starts returns the worker jobs to submit for a number of CPUs: one job for each glidein with free resources, the
// largest glidein first, with all free CPUs or as many as are wanted.
func (w *World) starts(now time.Time, want int) (orders []Order) {
	want -= w.coming(now)
	hosts := w.hosts(now)
	slices.SortStableFunc(hosts, func(a, b host) int { return cmp.Compare(b.free.CPUs, a.free.CPUs) })
	for _, h := range hosts {
		need, some := w.fitting(h)
		if want <= 0 {
			break
		}
		if !some || h.waits {
			continue
		}
		cpus := max(1, need.CPUs, min(want, h.free.CPUs))
		want -= cpus
		orders = append(orders, Order{
			Deed: Start, Need: need, Job: WorkerJob{Glidein: h.id, CPUs: cpus, Priority: w.Priority},
		})
	}
	return orders
}

// coming returns the number of CPUs that worker jobs will soon provide.
func (w *World) coming(now time.Time) (cpus int) {
	for _, j := range w.Jobs {
		if (j.State == Idle || j.State == Running && !w.dialled(j)) && now.Sub(j.Since) < overdue {
			cpus += j.CPUs
		}
	}
	return cpus
}

// dialled reports whether a job's worker has connected.
func (w *World) dialled(j WorkerJob) bool {
	id := jobfiles.StreamWorker(j.Glidein, j.Number)
	return slices.ContainsFunc(w.Workers, func(s corral.Worker) bool { return s.ID == id })
}

// A host is a glidein from the point of view of worker jobs.
type host struct {
	id    string
	free  corral.Resources
	left  time.Duration // for the longest estimate of a task
	waits bool          // a worker job already waits on the host
}

// hosts returns the glideins with free resources. HTCondor reports the resources that no job uses; resources of worker
// jobs that HTCondor does not include yet are subtracted here, because another worker job submitted for them would wait
// there and block others.
func (w *World) hosts(now time.Time) (hosts []host) {
	for _, g := range w.Glideins {
		left := g.EndsAt.Sub(now)
		if !g.Connected || g.Draining || left < least {
			continue
		}
		if w.clearing(g.ID) {
			continue
		}
		h := host{id: g.ID, free: g.Free(), left: g.Speed.Within(left)}
		var used corral.Resources
		for _, j := range w.Jobs {
			if j.Glidein != g.ID || j.State == Held || j.State == Parked {
				continue
			}
			used = used.Plus(corral.Resources{CPUs: j.CPUs, MemoryMiB: j.MemoryMiB, GPUs: j.GPUs})
			h.waits = h.waits || j.State == Idle
		}
		h.free.MemoryMiB = min(h.free.MemoryMiB, g.MemoryMiB-used.MemoryMiB)
		h.free.GPUs = min(h.free.GPUs, g.GPUs-used.GPUs)
		if h.free.CPUs = min(h.free.CPUs, g.CPUs-used.CPUs); h.free.CPUs > 0 {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// fitting returns the resources that the most urgent fitting tasks need on a host. The GPUs are those of the first such
// task that needs any GPUs, so that this task need not wait until a worker job without GPUs has ended. If tasks wait
// only at other workers, any host is suitable.
func (w *World) fitting(h host) (need corral.Resources, some bool) {
	for _, c := range w.Waiting {
		if !c.Needs.FitIn(h.free) || c.Needs.Time >= h.left {
			continue
		}
		if !some {
			need, some = c.Needs.Resources, true
		}
		need.GPUs = cmp.Or(need.GPUs, c.Needs.GPUs)
	}
	return need, some || len(w.Waiting) == 0
}

// Stuck reports whether a waiting task is too large for every worker job although it would fit a glidein: on each such
// glidein, small worker jobs hold the resources that the task needs, and would hold them for as long as they receive
// tasks.
func (w *World) Stuck(now time.Time) bool {
	_, stuck := w.wide(now)
	return stuck
}

// wide returns the resources that the most urgent stuck task needs.
func (w *World) wide(now time.Time) (need matching.Resources, stuck bool) {
	hosts := w.hosts(now)
	for _, c := range w.Waiting {
		some := func(s corral.Worker) bool { return s.Connected && !s.Draining && c.Needs.FitIn(s.Resources()) }
		free := func(h host) bool { return c.Needs.FitIn(h.free) }
		if slices.ContainsFunc(w.Glideins, some) && !slices.ContainsFunc(w.Workers, some) && w.coming(now) == 0 &&
			!slices.ContainsFunc(hosts, free) {
			return c.Needs, true
		}
	}
	return need, false
}

// retirements returns orders that clear a glidein for a task that has been stuck for a long time: the glidein's worker
// jobs finish their tasks and end. Until they have ended, no other glidein is cleared, and no worker job is submitted
// for this glidein.
func (w *World) retirements(now time.Time) (orders []Order) {
	need, stuck := w.wide(now)
	if !stuck || w.StuckFrom.IsZero() || now.Sub(w.StuckFrom) < patience {
		return nil
	}
	for _, g := range w.Glideins {
		if w.clearing(g.ID) {
			return nil
		}
	}
	for _, g := range w.Glideins {
		if !g.Connected || g.Draining || !need.FitIn(g.Resources()) || need.Time > g.Speed.Within(g.EndsAt.Sub(now)) {
			continue
		}
		for _, j := range w.Jobs {
			if j.Glidein == g.ID && j.State == Running && w.dialled(j) {
				orders = append(orders, Order{Deed: Retire, Job: j})
			}
		}
		if len(orders) > 0 {
			return orders
		}
	}
	return nil
}

// clearing reports whether a worker job on a glidein was retired and has not ended yet.
func (w *World) clearing(glidein string) bool {
	return slices.ContainsFunc(w.Workers, func(s corral.Worker) bool {
		return s.Draining && jobfiles.OnGlidein(s.ID) == glidein
	})
}

// Rest returns the pause before the next submission after the given number of consecutive failures, in which worker
// jobs ended without having connected.
func Rest(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(time.Second<<min(failures-1, 10), restMost)
}
