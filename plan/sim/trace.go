package sim

import (
	"path"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// An Ending is the reason for the end of a simulation.
type Ending string

const (
	Done      Ending = "done"       // every task completed
	Failed    Ending = "failed"     // a task failed for good; the others completed or were skipped
	Stalled   Ending = "stalled"    // no present or requested worker could run the ready tasks
	BrokenOff Ending = "broken off" // the horizon was reached
)

// A Trace is the result of a simulation: the records of the run, in the form of a real run's journal, and the resources
// that its pilots held. Durations are measured from the beginning.
type Trace struct {
	Begin   time.Time
	Records []execution.Record
	Pilots  []Held // in order of submission
	Ending  Ending
	Why     string        // the reason, if the run stalled
	Over    time.Duration // end of the run

	last   execution.Msec    // end of the last task that ran
	worked map[string]worked // :: tag of a pilot → on its workers
	x      *execution.Execution
}

// worked is the time that cpus spent on successful attempts.
type worked time.Duration

// Held describes the resources that one attempt of a glidein held. Instants that did not occur are negative: Start if
// the attempt ended in the queue, Ready if its workers never registered. During the simulation, End is negative for
// queued and running attempts.
type Held struct {
	Site, Queue string
	Glidein     corral.GlideinID
	Attempt     int // number of the glidein's attempt, from 1
	Hosts, CPUs int // CPUs is the number per host, like the next two; 0 of these: not requested
	MemoryMiB   int
	GPUs        int
	Walltime    time.Duration

	Submit, Start, Ready, End time.Duration
	Outcome                   corral.Outcome
	Reason                    string

	Tag string // tag of the attempt's job; its workers are named Tag/HOST
}

// For returns how long the attempt held its hosts.
func (h Held) For() time.Duration {
	if h.Start < 0 {
		return 0
	}
	return max(0, h.End-h.Start)
}

// Makespan returns the time from the beginning to the end of the last task that ran, or 0 if no task ran.
func (t *Trace) Makespan() time.Duration {
	if t.last == 0 {
		return 0
	}
	return t.last.Time().Sub(t.Begin)
}

// count adds the end of a task of a workflow to the sums of the trace.
func (t *Trace) count(r *execution.Record, work *execution.Spec) {
	o := r.Finished
	if o == nil {
		return
	}
	if t.last = max(t.last, o.Ended); o.Status == execution.Done {
		t.worked[path.Dir(o.Worker)] += worked(work.Tasks[o.Task].CPUs) * worked(o.Ended.Time().Sub(o.Started.Time()))
	}
}

// CoreHours returns the core-hours that the pilots held, from their starts to their ends.
func (t *Trace) CoreHours() float64 {
	var sum float64
	for _, h := range t.Pilots {
		sum += float64(h.Hosts*h.CPUs) * h.For().Hours()
	}
	return sum
}

// Work returns the core-hours of the successful attempts.
func (t *Trace) Work() float64 { return t.WorkOn(func(Held) bool { return true }) }

// WorkOn returns the core-hours of the successful attempts on selected pilots.
func (t *Trace) WorkOn(some func(Held) bool) float64 {
	var sum worked
	for _, h := range t.Pilots {
		if some(h) {
			sum += t.worked[h.Tag]
		}
	}
	return time.Duration(sum).Hours()
}

// Tasks returns the number of tasks in each final state.
func (t *Trace) Tasks() corral.RunTasks { return t.x.Counts() }

// Report returns the report that a real run would produce, or nil if no task ran.
func (t *Trace) Report() *corral.RunReport { return t.x.Report(t.Begin) }
