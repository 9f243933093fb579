// Package pacing decides when the later pilots of a plan are submitted during a run. By the clock, a pilot of a later
// stage comes at its planned time, and if the stage before it takes longer than estimated, the pilot leaves for lack of
// work before its own stage begins. Therefore a pilot is submitted at the later of its planned time and the time when
// its first tasks are expected to be ready as soon as planned.
//
// The simulator and corrald use the same rule.
package pacing

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Hold is the minimum time from now to which a pilot is postponed. Period is how often the decision about a postponed
// pilot is made again, and the smallest difference that matters.
const (
	Hold   = 10 * time.Second
	Period = time.Second
)

// Patience is how long a run must have been Stuck before its pilots are submitted for that reason. Between two tasks, a
// run is stuck for moments.
const Patience = 30 * time.Second

// Reason returns the reason for submitting a pilot at another time.
func Reason(before, at time.Time) string {
	if at.After(before) {
		return "its first tasks will be ready later than planned"
	}
	return "its first tasks will be ready sooner than expected"
}

// A Later is a pilot of a plan that has not been submitted.
type Later struct {
	First   []int         // the tasks that are planned to start first on it
	Lead    time.Duration // planned time from its submission to their start
	Planned time.Time     // planned time of its submission
}

// A State is the progress of a run at an instant.
type State struct {
	Graph    *dag.Graph
	Estimate func(task int) time.Duration
	Hop      time.Duration // from the end of a task's last parent to its start
	Now      time.Time
	Progress func(task int) execution.Progress
	Stuck    bool // tasks are ready, none runs, and no pilot has been submitted whose workers are not there yet

	ready map[int]time.Time // :: task → forecast
}

// At returns when a pilot should be submitted that would otherwise be submitted at the given time: the same time, a
// later one, or, if it has been postponed, an earlier one.
func (r *State) At(p Later, at time.Time) time.Time {
	due := latest(r.due(p), p.Planned)
	switch {
	case due.Sub(at) > Period:
		return latest(due, r.Now.Add(Hold))
	case at.Sub(latest(due, r.Now)) > Period:
		return latest(due, r.Now)
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// due returns when the first tasks of a pilot make it due. A pilot whose first tasks are ready or over is due now, and
// so is every pilot if tasks are ready, none runs and no pilot comes, because the run may wait for it alone.
func (r *State) due(p Later) time.Time {
	if r.ready == nil {
		r.ready = map[int]time.Time{}
	}
	if r.Stuck || len(p.First) == 0 {
		return r.Now
	}
	due := time.Unix(0, math.MaxInt64)
	for _, i := range p.First {
		if r.Progress(i).State != corral.TaskWaiting {
			return r.Now
		}
		if at := r.forecast(i).Add(-p.Lead); at.Before(due) {
			due = at
		}
	}
	return due
}

// forecast returns when a task will be ready to start if, from now on, every task starts as soon as its parents are
// done. Cpus are not counted, so the forecast is not too late.
func (r *State) forecast(i int) time.Time {
	if at, ok := r.ready[i]; ok {
		return at
	}
	at := r.Now
	for _, p := range r.Graph.Parents(i) {
		if end := r.end(p); end.After(at) {
			at = end
		}
	}
	r.ready[i] = at.Add(r.Hop)
	return r.ready[i]
}

// end returns when a task is expected to end.
func (r *State) end(i int) time.Time {
	switch p := r.Progress(i); {
	case p.State.Over():
		return r.Now
	case p.State == corral.TaskRunning:
		return p.Since.Add(r.Estimate(i))
	case p.State == corral.TaskReady:
		return r.Now.Add(r.Hop + r.Estimate(i))
	}
	return r.forecast(i).Add(r.Estimate(i))
}
