package sim

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/resubmit"
)

// A Scenario is what is played: the work, where it may run, which pilots are asked for, and what chance does. Its
// functions must return the same for the same arguments; the constructors of this package draw from a seed. Durations
// are rounded up to milliseconds.
type Scenario struct {
	Work  execution.Spec
	Sites []Site
	Asks  []Ask // recorded at the beginning, to be submitted at their Submit

	Runtime  Runtime              // nil: each task takes its estimate
	Speed    func(Host) float64   // by which runtimes on a host are multiplied; nil: 1
	Bytes    func(task int) int64 // that travel with a task where its site has a plan.Transfer; nil: 0
	Failures Failures
	Cluster  Cluster

	Control Control       // nil: only Asks are asked for
	Every   time.Duration // between two calls of Control; 0: 10 s

	Stall   time.Duration // how long a task may be ready that nothing can take; 0: 5 minutes
	Horizon time.Duration // when the simulation is broken off; 0: a year
	Linger  bool          // play on after the run, until all pilots have left by their own rules
	Begin   time.Time     // instant 0; zero: the year 2000
}

// A Runtime says how long an attempt at a task takes on a host of speed 1. Tasks are named by their index in the
// workflow, attempts from 1.
type Runtime func(task, attempt int) time.Duration

// A Site is one queue of one site: what a plan knows of it, and how long its pilots wait in truth. Of what a plan
// assumes, Wait is used only if there is no Draw. Margin is not used: what production keeps of a walltime is kept.
type Site struct {
	plan.Site

	// Draw returns how long the nth pilot of the site, from 0, waits in the queue; nil: Wait of its shape, and without
	// that not at all. So two policies meet the same waits, one pilot after the other.
	Draw func(shape plan.Shape, n int) time.Duration

	// Batch is the site's queue as the simulation finds it, with jobs of others; it is not changed. Pilots are jobs
	// there, of all the cpus of their hosts, and wait as long as its policy lets them: Draw and Wait do not count,
	// and CPUs does for each alone. nil: waits are drawn, and do not depend on what is held.
	Batch *queue.Queue

	// Credentials are those that lead to the site, each from its NotBefore on until its NotAfter. They count from
	// Scenario.Begin on, and are not renewed.
	Credentials []credential.Credential

	// Seen returns how long after the end of the nth pilot corrald sees it, and what follows is decided; nil: 50 ms. In
	// reality that depends on when it polled last: at least 50 ms after workers have left, at most 2 s.
	Seen func(n int) time.Duration
}

// Never is the wait of a pilot that never starts.
const Never time.Duration = math.MaxInt64 / 4

// An Ask asks for a pilot, or has one go. Of a plan's pilot Start, Ready and End do not count: they come about.
type Ask struct {
	plan.Pilot
	Idle     time.Duration   // it leaves when it has had nothing to do for so long; 0: never
	Overlap  time.Duration   // its successor is to run so long before its workers leave
	Resubmit resubmit.Policy // what follows its attempts

	// Takes is the glidein that it takes over from, of those that were asked for before, by their number from 1; 0:
	// none. It is wanted so long After that one's start.
	Takes corral.GlideinID
	After time.Duration

	// Only from a Control: what is asked of a glidein that was asked for before. The other fields do not count then.
	Release corral.Ask
	Glidein corral.GlideinID
}

// AsksFor asks for pilots of a plan, when so many glideins were asked for before.
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

// A Control is a policy that asks for pilots, and has them go, while a run is under way. It is called at the beginning
// and then regularly, until the run is over.
type Control func(now time.Duration, v View) []Ask

// A View is what a Control may know: what corrald would.
type View struct {
	Tasks      corral.RunTasks
	QueuedCPUs int    // that released tasks need which no worker has
	BusyCPUs   int    // of those that workers have
	CPUs       int    // of the workers registered
	Pilots     []Held // in the order of their submission; not to be written to

	// These take a look at each task, and at each worker, when they are called. They are not to be called later.
	Progress func() []execution.Progress // by task
	Workers  func() map[string]Place     // :: name of a worker that is there → where it is
}

// A Place is where a worker is, and what it has to do.
type Place struct {
	Pilot int           // index among View.Pilots
	Host  int           // of that pilot
	Idle  time.Duration // for how long it has had nothing to do; negative: it has something
}

// A Cluster is the personal cluster that runs the tasks: how many it can start a second, and how long after an event
// (a task's end, a worker's arrival) a task starts that waited for it.
type Cluster struct {
	plan.Cluster
	Lease time.Duration // how long after its last sign of life a worker is given up; 0: 20 s, as production's
}

// A Host names one host of a pilot: what is drawn for it does not depend on when it is asked for.
type Host struct {
	Site   string
	Pilot  int // number at its site, from 0
	Number int // of the pilot's hosts, from 0
}

// Failures say what breaks. Nil functions break nothing.
type Failures struct {
	// Task returns at which share of its runtime an attempt fails; 1 or more: it does not.
	Task func(task, attempt int) float64
	// Pilot returns how long after its start a pilot is ended by its site without a word; ok is false if it is not.
	Pilot func(site string, pilot int) (after time.Duration, ok bool)
	// Host returns how long after the start of its pilot a host fails. With host 0 the whole pilot is lost.
	Host func(Host) (after time.Duration, ok bool)
}
