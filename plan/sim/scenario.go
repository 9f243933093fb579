package sim

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/pacing"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/resubmit"
)

// A Scenario is the input of a simulation: the work, the sites, the pilots to request, and the random behaviour. Its
// functions must be deterministic; the constructors of this package derive random values from a seed. Durations are
// rounded up to milliseconds.
type Scenario struct {
	Work  execution.Spec // see WorkOf
	Sites []Site
	Asks  []Ask // recorded at the beginning, submitted at their Submit times

	Runtime  Runtime              // nil: each task takes its estimate
	Speed    func(Host) float64   // factor for runtimes on a host, besides its site's speed; nil: 1
	Bytes    func(task int) int64 // bytes transferred with a task if its site has a plan.Transfer; nil: 0
	Failures Failures
	Cluster  Cluster

	Control Control       // nil: only Asks are requested
	Every   time.Duration // interval between calls of Control; 0: 10 s
	Patient bool          // calls are rarer, by up to 1/32 of the time, while Control sees no change

	Stall   time.Duration // how long a ready task may have no worker that could run it; 0: 5 minutes
	Horizon time.Duration // time limit of the simulation; 0: a year
	Linger  bool          // continue after the run, until all pilots have left by their own rules

	// Observe, unless it is nil, receives each record once it has been applied. The trace then has no records, which
	// saves most of the memory of a large simulation.
	Observe func(execution.Record)
	Begin   time.Time // instant 0; zero: the year 2000
}

// WorkOf returns a workflow in the form of Scenario.Work. A runtime of 0 becomes a millisecond.
func WorkOf(w plan.Work) execution.Spec {
	spec := execution.Spec{Graph: w.Graph, Tasks: make([]execution.TaskSpec, len(w.Tasks))}
	for i, t := range w.Tasks {
		spec.Tasks[i] = execution.TaskSpec{ID: t.ID, CPUs: t.Needs.CPUs, MemoryMiB: t.Needs.MemoryMiB,
			GPUs: t.Needs.GPUs, DiskMiB: t.Needs.DiskMiB, Estimate: max(t.Runtime, time.Millisecond)}
	}
	return spec
}

// A Runtime returns the runtime of an attempt at a task on a host of speed 1. Tasks are indices in the workflow,
// attempts are numbered from 1.
type Runtime func(task, attempt int) time.Duration

// A Site is one queue of one site, with its plan parameters and the actual waits of pilots. Wait is used only if Draw
// is nil. Margin is not used: production's own reserve applies.
type Site struct {
	plan.Site

	// Draw returns the wait of the nth pilot of the site, counted from 0. If Draw is nil, the wait is the value of Wait
	// for the pilot's shape or, without Wait, 0. With Draw, two policies encounter the same sequence of waits.
	Draw func(shape plan.Shape, n int) time.Duration

	// Batch is the initial state of the site's queue, with jobs of other users; it is not modified. Pilots are jobs in
	// this queue that need all cpus of their hosts, and wait according to its policy: Draw and Wait are ignored, and
	// CPUs limits each pilot separately. If Batch is nil, waits are random, and do not depend on the resources held.
	Batch *queue.Queue

	// Credentials grant access to the site, each from its NotBefore to its NotAfter, which are instants of the
	// simulated time that begins at Scenario.Begin. The credentials are not renewed.
	Credentials []credential.Credential

	// Seen returns the delay after which corrald sees the end of the nth pilot and acts on it; nil: 50 ms. In reality
	// the delay depends on the time of the last poll: it is at least 50 ms after workers have left, and at most 2 s.
	Seen func(n int) time.Duration
}

// Never is the wait of a pilot that never starts.
const Never time.Duration = math.MaxInt64 / 4

// An Ask requests or releases a pilot. Start, Ready and End of a plan's pilot are ignored, because they result from the
// simulation.
type Ask struct {
	plan.Pilot
	Idle     time.Duration   // idle time after which the pilot leaves; 0: never
	Overlap  time.Duration   // how long before its workers leave the successor should run
	Resubmit resubmit.Policy // policy for attempts after the first

	// Takes is the number, from 1, of an earlier glidein that this one replaces; 0: none. After is the time from the
	// start of the earlier glidein to the submission of this one.
	Takes corral.GlideinID
	After time.Duration

	Past *Past // nil: the pilot has none

	// Pace postpones the pilot while its first tasks are not expected to be ready; without any, its time is kept. Its
	// Planned is not used.
	Pace pacing.Later

	// Release, which only a Control uses, is a request to release the earlier glidein Glidein. The other fields are
	// then ignored.
	Release corral.Ask
	Glidein corral.GlideinID
}

// A Past is the state of a pilot that exists before the beginning.
type Past struct {
	Running []plan.Running // tasks that continue on its hosts for their Runtime; they must be ready at the beginning
	Until   time.Duration  // no other task may end later than this after its workers have joined
	Idle    time.Duration  // how long its workers have had no task when they join
	Speed   corral.Speed   // that its workers told the cluster, whatever the speed of its site is
}

// AsksFor returns the requests for the pilots of a plan; before is the number of glideins requested earlier.
func AsksFor(pilots []plan.Pilot, before int, idle time.Duration) []Ask {
	asks := make([]Ask, len(pilots))
	for i, q := range pilots {
		asks[i] = Ask{Pilot: q, Idle: idle}
		if idle > 0 {
			asks[i].Idle += time.Duration(q.Patience() - plan.LeaveAfter)
		}
		if q.Follows != nil {
			asks[i].Takes = corral.GlideinID(before + *q.Follows + 1)
			asks[i].After = max(0, time.Duration(q.Submit-pilots[*q.Follows].Start))
		}
	}
	return asks
}

// A Control is a policy that requests and releases pilots during a run. It is called at the beginning and then
// regularly, until the run is over.
type Control func(now time.Duration, v View) []Ask

// A View is the information available to a Control: the same information that is available to corrald.
type View struct {
	Tasks      corral.RunTasks
	QueuedCPUs int    // number of cpus of released tasks that no worker has
	BusyCPUs   int    // number of cpus of tasks that workers have
	CPUs       int    // number of cpus of registered workers
	Pilots     []Held // in order of submission; must not be modified

	// Progress and Workers examine each task and each worker when they are called. They must not be called after the
	// Control has returned.
	Progress func() []execution.Progress // by task
	Workers  func() map[string]Place     // :: name of a present worker → its place
}

// A Place is a worker's location and idle time.
type Place struct {
	Pilot int           // index in View.Pilots
	Host  int           // index among that pilot's hosts
	Idle  time.Duration // how long the worker has had no tasks; negative: it has some
}

// A Cluster is the personal cluster that runs the tasks: its rate of task starts, and the delay between an event (a
// task's end, a worker's registration) and the start of a task that waited for it.
type Cluster struct {
	plan.Cluster
	Lease time.Duration // silence after which a worker counts as lost; 0: 20 s, as in production
}

// A Host identifies one host of a pilot, so that the random values for a host do not depend on when they are drawn.
type Host struct {
	Site   string
	Pilot  int // index at its site, from 0
	Number int // index among the pilot's hosts, from 0
}

// Failures determines which tasks, pilots and hosts fail. Nil functions cause no failures.
type Failures struct {
	// Task returns the share of its runtime after which an attempt fails; at 1 or more it does not fail.
	Task func(task, attempt int) float64
	// Pilot returns the time after its start at which the site ends a pilot abruptly; ok is false if the site does not
	// end it.
	Pilot func(site string, pilot int) (after time.Duration, ok bool)
	// Host returns the time from the start of the pilot to the failure of a host; if host 0 fails, the whole pilot is
	// lost.
	Host func(Host) (after time.Duration, ok bool)
}
