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
	// linger is how long worker jobs stay when no run is left: for the next one of a script that makes several.
	linger = 3 * time.Second
	// surplus is how long a worker job may wait for its slot although nothing waits for a worker, or its glidein is not
	// there. Between two levels of a workflow, and after a start of corrald, that is so for moments.
	surplus = 10 * time.Second
	// overdue is how long a worker job that waits for its slot, or has one and is about to dial in, counts as one that
	// comes. Later others are asked for beside it, elsewhere.
	overdue = 30 * time.Second
	// least is what a glidein must have left for a worker job to be worth it.
	least = 20 * time.Second
	// patience is how long a task waits for a larger worker job than there is, before a glidein is cleared for it.
	patience = 10 * time.Second
	// restMost bounds the pause after worker jobs that ended without having dialled in.
	restMost = time.Minute
)

// A World is what is known of a stream at one look.
type World struct {
	Runs      int       // that are attached
	AloneFrom time.Time // since when none is
	Priority  int64     // of the most urgent run's worker jobs
	RestUntil time.Time // nothing is submitted before
	StuckFrom time.Time // since when a task is Stuck; zero: none is

	Waiting []matching.Class // the tasks that no worker has, the most urgent first
	Behind  int              // cpus for those that wait at a worker, behind others

	Glideins []corral.Worker // of the pool, with what HTCondor says is free there
	Workers  []corral.Worker // that dialled in, one for each worker job that runs
	Absent   []string        // ids of those that have no connection
	Jobs     []Job           // in the schedd's queue
}

// A State is what a worker job is doing.
type State uint8

const (
	Idle    State = iota // it waits for its slot
	Running              // its program runs, or is about to
	Held                 // by HTCondor, for a reason of its own
	Parked               // held by the user, who may release it
	Leaving              // it was removed, and its slot is not free yet
)

// A Job is a worker job in the schedd's queue.
type Job struct {
	ID       eventlog.JobID
	Number   int64
	Glidein  string // the worker of the pool on which alone it runs
	State    State
	CPUs     int // that it waits for, or has
	Priority int64

	MemoryMiB, GPUs int // likewise, as far as the queue says it

	Hold  string    // why it is held
	Since time.Time // of its state
}

// A Deed is a kind of order.
type Deed uint8

const (
	Start  Deed = iota // submit a worker job
	Remove             // take it out of the queue
	Rank               // give it the World's priority
	Retire             // have it finish what it runs, and leave
	Bury               // take back what its worker had, which has ended without a word
)

// An Order is something to be done now.
type Order struct {
	Deed Deed
	Job  Job    // of a Start only Glidein, CPUs and Priority; of a Retire only Glidein and Number
	Why  string // of a removal

	Worker string // of a Bury

	Need corral.Resources // of a Start: what the slot must have, for a task that waits
}

// Decide says what is to be done about the worker jobs of a stream. It is called with what was just looked up: an order
// that was carried out is not given again, as the next World shows what came of it.
func Decide(now time.Time, w World) (orders []Order) {
	if w.Runs == 0 {
		if now.Before(w.AloneFrom.Add(linger)) {
			return nil
		}
		return removals(w.Jobs, "no run is left", func(Job) bool { return true })
	}
	there := map[string]bool{}
	for _, g := range w.Glideins {
		there[g.ID] = g.Connected && !g.Draining
	}
	want := w.demand()
	orders = removals(w.Jobs, "HTCondor holds it", func(j Job) bool { return j.State == Held })
	orders = append(orders, removals(w.Jobs, "its glidein is gone", func(j Job) bool {
		return j.State == Idle && !there[j.Glidein] && now.Sub(j.Since) > surplus
	})...)
	orders = append(orders, removals(w.Jobs, "nothing waits for it", func(j Job) bool {
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

// removals are the orders to remove those jobs that are so. One that is leaving was removed before.
func removals(jobs []Job, why string, is func(Job) bool) (orders []Order) {
	for _, j := range jobs {
		if j.State != Leaving && is(j) {
			orders = append(orders, Order{Deed: Remove, Job: j, Why: why})
		}
	}
	return orders
}

// demand is how many cpus could be used beyond those of the workers that are there: by the tasks that no worker has,
// and by those that wait at one behind others.
func (w *World) demand() (cpus int) {
	for _, c := range w.Waiting {
		cpus += c.Jobs * max(1, c.Needs.CPUs)
	}
	return cpus + w.Behind
}

// burials are for workers without connection whose worker job has left the queue: HTCondor has ended what was left of
// it. While it is there they may come back, until their leases are over.
func (w *World) burials() (orders []Order) {
	for _, id := range w.Absent {
		if !slices.ContainsFunc(w.Jobs, func(j Job) bool { return jobfiles.StreamWorker(j.Glidein, j.Number) == id }) {
			orders = append(orders, Order{Deed: Bury, Worker: id})
		}
	}
	return orders
}

// starts are the worker jobs to submit for so many cpus. There is one for each glidein that has something free, the
// largest first, of all that is free there or of what is wanted.
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
			Deed: Start, Need: need, Job: Job{Glidein: h.id, CPUs: cpus, Priority: w.Priority},
		})
	}
	return orders
}

// coming is how many cpus worker jobs will soon bring.
func (w *World) coming(now time.Time) (cpus int) {
	for _, j := range w.Jobs {
		if (j.State == Idle || j.State == Running && !w.dialled(j)) && now.Sub(j.Since) < overdue {
			cpus += j.CPUs
		}
	}
	return cpus
}

// dialled reports whether the worker of a job has come in.
func (w *World) dialled(j Job) bool {
	id := jobfiles.StreamWorker(j.Glidein, j.Number)
	return slices.ContainsFunc(w.Workers, func(s corral.Worker) bool { return s.ID == id })
}

// A host is a glidein as worker jobs see it.
type host struct {
	id    string
	free  corral.Resources
	left  time.Duration
	waits bool // a worker job waits there already
}

// hosts returns the glideins that have something free. HTCondor says what no job has; what it does not know yet of
// worker jobs is left out of account here: one that was submitted for it would wait there, and keep others away.
func (w *World) hosts(now time.Time) (hosts []host) {
	for _, g := range w.Glideins {
		left := g.EndsAt.Sub(now)
		if !g.Connected || g.Draining || left < least {
			continue
		}
		if w.clearing(g.ID) {
			continue
		}
		h := host{id: g.ID, free: g.Free(), left: left}
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

// fitting returns what the most urgent tasks need of a host that fit there; GPUs are the first's that wants some, so
// that it does not have to wait until a worker job without any has left. If none waits but at other workers, any host
// will do.
func (w *World) fitting(h host) (need corral.Resources, some bool) {
	for _, c := range w.Waiting {
		if !c.Needs.FitIn(h.free) || c.Needs.Time >= h.left {
			continue
		}
		if !some {
			need, some = c.Needs.Resources, true
		}
		if need.GPUs == 0 {
			need.GPUs = c.Needs.GPUs
		}
	}
	return need, some || len(w.Waiting) == 0
}

// Stuck reports whether a task waits that no worker job is large enough for, although a glidein is: on each that is,
// small worker jobs have what it needs. While tasks follow each other there, they would keep it for good.
func (w *World) Stuck(now time.Time) bool {
	_, stuck := w.wide(now)
	return stuck
}

// wide returns what the most urgent such task needs.
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

// retirements clear a glidein for a task that has been stuck for long: its worker jobs finish what they run. Until they
// have left, no other is cleared, and nothing is submitted for this one.
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
		if !g.Connected || g.Draining || !need.FitIn(g.Resources()) || need.Time > g.EndsAt.Sub(now) {
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

// clearing reports whether a worker job on a glidein was retired and has not left.
func (w *World) clearing(glidein string) bool {
	return slices.ContainsFunc(w.Workers, func(s corral.Worker) bool {
		return s.Draining && jobfiles.OnGlidein(s.ID) == glidein
	})
}

// Rest is how long nothing is submitted after so many worker jobs in a row that ended without having dialled in.
func Rest(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(time.Second<<min(failures-1, 10), restMost)
}
