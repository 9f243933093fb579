package dispatch

import (
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A mark says how far the result of one task has come. A result is received, then recorded by the sink, and only then
// acknowledged; a job is over for its worker's slot with the first, and for the books with the second.
type mark uint8

const (
	received mark = 1 << iota // by the dispatcher
	recorded                  // by the sink
)

// An entry is a job that the dispatcher has: queued, on its way to a worker, or held by one. The
// dispatcher's lock guards all of it except job, which does not change once the entry is queued.
type entry struct {
	job   execution.Job
	match matching.Job[*entry] // what it is matched by

	sent      bool   // to the worker that holds it; else its intent is still being recorded
	recalled  bool   // its worker was asked to hand it back
	cancelled bool   // its run was cancelled, or no sink claims it
	marks     []mark // of its tasks, once there are results
}

// newEntry returns an entry of j, one of the jobs of run. run is nil while no sink claims the job, as after a restart,
// when a worker may tell of a job before its run is attached.
func newEntry(j execution.Job, run *matching.Run[*entry]) *entry {
	e := &entry{}
	e.describe(j, run)
	return e
}

// describe makes e the entry of j, without results so far. It must not be queued.
func (e *entry) describe(j execution.Job, run *matching.Run[*entry]) {
	e.job, e.marks = j, nil
	e.match = matching.Job[*entry]{
		Value: e, Run: run, Class: j.Class, Priority: j.Priority,
		Needs: matching.Resources{Resources: j.Needs(), Time: j.Estimate()},
	}
}

// mark notes how far the result of the task with this index has come; it reports whether the job has
// such a task.
func (e *entry) mark(index int, m mark) bool {
	for i := range e.job.Tasks {
		if e.job.Tasks[i].Index != index {
			continue
		}
		if e.marks == nil {
			e.marks = make([]mark, len(e.job.Tasks))
		}
		e.marks[i] |= m
		return true
	}
	return false
}

// complete reports whether the results of all its tasks have come as far as m. Without any result it is not.
func (e *entry) complete(m mark) bool {
	for _, have := range e.marks {
		if have&m == 0 {
			return false
		}
	}
	return e.marks != nil
}

// unrecorded reports whether a result came that the sink has not recorded. Then the task has run, whatever the worker
// says of the job afterwards.
func (e *entry) unrecorded() bool {
	for _, have := range e.marks {
		if have&received != 0 && have&recorded == 0 {
			return true
		}
	}
	return false
}

// renew makes e as it was before any worker had it.
func (e *entry) renew() {
	e.sent, e.recalled = false, false
}
