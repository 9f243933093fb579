package revision

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A View is the state of a plan's run at an instant. Times count from the plan's beginning.
type View struct {
	Now     time.Duration
	Goal    plan.Goal
	Promise time.Duration // the makespan that the plan predicted
	Problem plan.Problem  // all work with the original estimates; the sites' remaining limits; pilots outside the plan
	Without []string      // the reasons why other possible sites are missing
	Shape   int           // cpus per host of new pilots; 0: several are tried
	Tasks   []Task        // by the index of Problem.Work.Tasks
	Pilots  []Pilot       // requested by the plan or a revision, in the order in which they get tasks
	// Beside lists what else costs money: earlier attempts of the pilots, attempts that may follow a failed one, and
	// hedges. They get no tasks.
	Beside  []Pilot
	Guesses map[string]bool // kinds of tasks whose estimates are only assumed
	Before  Before
	Period  time.Duration // maximum time from Now to the next decision
	Grace   time.Duration // maximum time that a released pilot takes to end

	// Context cancels the search for pilots to add; after cancellation no pilots are added. nil: never.
	Context context.Context
}

// A Task is the progress of one task.
type Task struct {
	State corral.TaskState
	Pilot int           // pilot of a running task: index in View.Pilots, followed by Problem.Present; negative: neither
	Host  int           // index among that pilot's hosts
	Since time.Duration // start of a running task
	Took  time.Duration // only for completed tasks: the time on the fastest hosts, like estimates
}

// A Phase is the progress of a pilot.
type Phase int

const (
	Planned Phase = iota // it will be submitted at Submit
	Queued               // it was submitted at Submit
	Booting              // its job has started, its workers are not present yet
	Working              // its workers are present
	Leaving              // it was released
	Gone                 // it has ended
)

// A Pilot is one pilot of the plan. Instants in the future are not set.
type Pilot struct {
	plan.Pilot                  // the request; only Submit is used among its times
	plan.Pace                   // of its hosts
	Number     int              // its index in the plan, which never changes
	Host       corral.Resources // per host
	Phase      Phase
	Tariff     plan.Tariff
	Wait       time.Duration // expected queue wait
	Overhead   time.Duration // expected time from the start of its job to its workers
	Margin     time.Duration // time before the end of its walltime in which it takes no tasks
	Keep       time.Duration // idle time after which it leaves
	Cancelled  bool          // it was cancelled
	Began      time.Duration // start of its job; negative: not started
	Ended      time.Duration
	Idle       time.Duration // how long it has had no task; 0: it has one
}

// Before is the state after the previous revision.
type Before struct {
	Number  int           // number of the previous revision; 0: there is none
	At      time.Duration // time of the last revision that changed pilots; 0: none did
	Late    bool          // a late deadline was announced
	Broke   bool          // an insufficient budget was announced
	Limited bool          // insufficient limits were announced, and no pilots were added since
}

// started reports whether a pilot holds its hosts, or has held them.
func (q Pilot) started() bool {
	return q.Phase >= Booting && q.Began >= 0
}

// spent returns the pilot as held until an instant, or until its end if that was earlier.
func (q Pilot) spent(until time.Duration) plan.Pilot {
	if q.Phase == Gone {
		until = min(until, q.Ended)
	}
	return q.heldFor(max(0, until-q.Began))
}

// heldFor returns a pilot of this shape that is held for the given time.
func (q Pilot) heldFor(d time.Duration) plan.Pilot {
	return plan.Pilot{Site: q.Site, Shape: q.Shape, End: corral.Seconds(d)}
}

// leaves returns the latest time at which a pilot with present workers starts a task. It returns 0 for other pilots.
func (q Pilot) leaves() time.Duration {
	if q.Phase != Working {
		return 0
	}
	return q.Began + time.Duration(q.Walltime) - q.Margin
}

// present converts the pilot for a problem whose time 0 is now; ok is false if no task will start there.
func (q Pilot) present(now time.Duration) (p plan.Present, ok bool) {
	p = plan.Present{Site: q.Site, Hosts: q.Hosts, Host: q.Host, Keep: q.Keep, Pace: q.Pace, Told: q.Speed}
	lifetime := time.Duration(q.Walltime) - q.Margin
	var began time.Duration
	switch q.Phase {
	case Planned:
		began = max(0, time.Duration(q.Submit)-now) + q.Wait
	case Queued:
		began = soon(q.Wait, now-time.Duration(q.Submit))
	case Booting:
		began = q.Began - now
		p.Ready = soon(q.Overhead, now-q.Began)
	case Working:
		began = q.Began - now
		p.Idle = q.Idle
	default:
		return p, false
	}
	if q.Phase == Planned || q.Phase == Queued {
		p.Ready = began + q.Overhead
	}
	p.End = began + lifetime
	return p, p.End > p.Ready
}

// overdue returns the expected remaining time of a task from its expected and elapsed times. A late task is expected to
// be late by three times its current delay in the end, but by at most a quarter of the elapsed time: a wrong estimate
// contains little information about the rest.
func overdue(expected, taken time.Duration) time.Duration {
	return max(expected-taken, min(2*(taken-expected), taken/4))
}

// patience is the tolerance for waits.
const patience = 10 * time.Second

// soon is like overdue for queue waits and start-up times. These vary considerably: a wait of up to twice the expected
// time does not justify a request for more pilots, which would also have to wait.
func soon(expected, taken time.Duration) time.Duration {
	if taken <= 2*expected+patience {
		return max(0, expected-taken)
	}
	return taken / 4
}
