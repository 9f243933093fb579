package sim

import (
	"path"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// An Ending says how a simulation ended.
type Ending string

const (
	Done      Ending = "done"       // every task is
	Failed    Ending = "failed"     // some task failed for good; the others are done or skipped
	Stalled   Ending = "stalled"    // no present or requested worker could take what was ready
	BrokenOff Ending = "broken off" // it reached its horizon
)

// A Trace is what happened: the record of the run, in the form of a real one's journal, and what its pilots held.
// Durations count from the beginning.
type Trace struct {
	Begin   time.Time
	Records []execution.Record
	Pilots  []Held // in the order of their submission
	Ending  Ending
	Why     string        // it stalled
	Over    time.Duration // when the run was over

	work execution.Spec
	x    *execution.Execution
}

// Held is what one attempt of a glidein held. Instants that did not come are negative: of one that ended in the queue
// Start is, of one whose workers never registered Ready is. While the simulation is under way, so is End of those that
// wait or run.
type Held struct {
	Site, Queue string
	Glidein     corral.GlideinID
	Attempt     int // number among the glidein's, from 1
	Hosts, CPUs int // cpus of each host
	Walltime    time.Duration

	Submit, Start, Ready, End time.Duration
	Outcome                   corral.Outcome
	Reason                    string

	Tag string // of its job: its workers are called Tag/HOST
}

// For is how long it held its hosts.
func (h Held) For() time.Duration {
	if h.Start < 0 {
		return 0
	}
	return max(0, h.End-h.Start)
}

// Makespan is when the last task ended that ran.
func (t *Trace) Makespan() time.Duration {
	var last execution.Msec
	for _, r := range t.Records {
		if r.Finished != nil {
			last = max(last, r.Finished.Ended)
		}
	}
	if last == 0 {
		return 0
	}
	return last.Time().Sub(t.Begin)
}

// CoreHours is what the pilots held, from their starts to their ends.
func (t *Trace) CoreHours() float64 {
	var sum float64
	for _, h := range t.Pilots {
		sum += float64(h.Hosts*h.CPUs) * h.For().Hours()
	}
	return sum
}

// Work is the core-hours of the attempts that were done.
func (t *Trace) Work() float64 { return t.WorkOn(func(Held) bool { return true }) }

// WorkOn is the core-hours of the attempts that were done on some of the pilots.
func (t *Trace) WorkOn(some func(Held) bool) float64 {
	counts := make(map[string]bool, len(t.Pilots)) // :: tag of a pilot → it is one of them
	for _, h := range t.Pilots {
		counts[h.Tag] = some(h)
	}
	var sum float64
	for _, r := range t.Records {
		if o := r.Finished; o != nil && o.Status == execution.Done && counts[path.Dir(o.Worker)] {
			sum += float64(t.work.Tasks[o.Task].CPUs) * o.Ended.Time().Sub(o.Started.Time()).Hours()
		}
	}
	return sum
}

// Tasks returns the number of tasks in each final state.
func (t *Trace) Tasks() corral.RunTasks { return t.x.Counts() }

// Report is what a real run's report would say; nil if no task ran.
func (t *Trace) Report() *corral.RunReport { return t.x.Report(t.Begin) }
