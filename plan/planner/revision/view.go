package revision

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A View is what is known of a plan's run at an instant. Times count from the plan's beginning.
type View struct {
	Now     time.Duration
	Goal    plan.Goal
	Promise time.Duration // the makespan that the plan predicted
	Problem plan.Problem  // all work as it was estimated; sites with what they give beyond Pilots; others' pilots
	Without []string      // why sites are not in it that pilots might have been asked for at
	Shape   int           // cpus of the hosts of what is asked for; 0: several are tried
	Tasks   []Task        // by the index of Problem.Work.Tasks
	Pilots  []Pilot       // that the plan, or a revision, asked for, in the order in which tasks go to them
	Before  Before
	Period  time.Duration // the next decision is made no later than so much after Now
	Grace   time.Duration // a pilot that is told to go is gone no later than so much after it

	// Context ends the search for pilots to add, of which there are none then; nil: nothing does.
	Context context.Context
}

// A Task says how far one task is.
type Task struct {
	State corral.TaskState
	Pilot int           // that has it: index in View.Pilots, then in Problem.Present; negative: neither. If it runs
	Host  int           // of that pilot
	Since time.Duration // when it began
	Took  time.Duration // only if it is done: what it would have taken on the fastest hosts, as estimates do
}

// A Phase says how far a pilot is.
type Phase int

const (
	Planned Phase = iota // it will be asked for at Submit
	Queued               // it was asked for at Submit
	Booting              // its job has started, its workers are not there
	Working              // its workers are there
	Leaving              // it was told to go
	Gone                 // it is over
)

// A Pilot is one of the plan's. Instants that have not come do not count.
type Pilot struct {
	plan.Pilot                  // what was asked for, where; of its times only Submit counts
	plan.Pace                   // of its hosts
	Number     int              // the index that it has in its plan, for life
	Host       corral.Resources // of each host
	Phase      Phase
	Tariff     plan.Tariff
	Wait       time.Duration // in the queue, as expected
	Overhead   time.Duration // from the start of its job to its workers, as expected
	Margin     time.Duration // before the end of its walltime, in which it takes no task
	Keep       time.Duration // it leaves after so long without a task
	Cancelled  bool          // it was told to go at once
	Began      time.Duration // its job; negative: it has not, or never did
	Ended      time.Duration
	Idle       time.Duration // for how long it has had no task; 0: it has one
}

// Before is what the revision before this one said.
type Before struct {
	Number  int           // 0: there is none
	At      time.Duration // of the last one that changed pilots; 0: none did
	Late    bool          // it said that the deadline will be missed
	Broke   bool          // it said that the budget does not suffice for what is left
	Limited bool          // it said that pilots would help that may not be asked for, and none were added since
}

// started reports whether a pilot holds its hosts, or has held them.
func (q Pilot) started() bool {
	return q.Phase >= Booting && q.Began >= 0
}

// spent is what a pilot has cost by an instant, if it is held until then unless it has ended before.
func (q Pilot) spent(until time.Duration) plan.Pilot {
	if q.Phase == Gone {
		until = min(until, q.Ended)
	}
	return q.heldFor(max(0, until-q.Began))
}

// heldFor is a pilot of this shape that is held for so long.
func (q Pilot) heldFor(d time.Duration) plan.Pilot {
	return plan.Pilot{Site: q.Site, Hosts: q.Hosts, CPUs: q.CPUs, End: corral.Seconds(d)}
}

// leaves is when a pilot whose workers are there takes its last task, at the latest; 0 for others.
func (q Pilot) leaves() time.Duration {
	if q.Phase != Working {
		return 0
	}
	return q.Began + time.Duration(q.Walltime) - q.Margin
}

// present is the pilot as a problem has it whose time 0 is now; ok is false if no task will begin there.
func (q Pilot) present(now time.Duration) (p plan.Present, ok bool) {
	p = plan.Present{Site: q.Site, Hosts: q.Hosts, Host: q.Host, Keep: q.Keep, Pace: q.Pace}
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

// overdue is how much longer a task is expected to take that was to take so long, and has taken some time. What is
// late will be late by three times as much in the end, but takes no more than a quarter longer than it has taken: an
// estimate that was too short says little about the rest.
func overdue(expected, taken time.Duration) time.Duration {
	return max(expected-taken, min(2*(taken-expected), taken/4))
}

// patience is by how much a wait may differ from what was expected before it means anything.
const patience = 10 * time.Second

// soon is overdue for a wait in a queue, or for a start. These vary much: one of up to twice what was expected is no
// reason to ask for more pilots, which would have to wait, too.
func soon(expected, taken time.Duration) time.Duration {
	if taken <= 2*expected+patience {
		return max(0, expected-taken)
	}
	return taken / 4
}
