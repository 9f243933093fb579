package dispatch

import (
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A mark records the progress of one task's result. A result is received, then recorded by the sink, and only then
// acknowledged. A job releases its worker's slot when its results are received, and is complete when they are recorded.
type mark uint8

const (
	received mark = 1 << iota // by the dispatcher
	recorded                  // by the sink
)

// An entry is a job in the dispatcher's hands: queued, on its way to a worker, or held by a worker. The dispatcher's
// lock guards all fields except job, which does not change once the entry is queued.
type entry struct {
	job   execution.Job
	match matching.Job[*entry] // the matcher's view of the job

	sent      bool   // to the worker that holds it; if false, the assignment is still being recorded
	recalled  bool   // its worker was asked to return it
	cancelled bool   // its run was cancelled, or no sink claims it
	marks     []mark // for its tasks, once there are results
}

// newEntry returns an entry for j, one of the jobs of run. run is nil while no sink claims the job: after a restart, a
// worker may report a job before its run is attached.
func newEntry(j execution.Job, run *matching.Run[*entry]) *entry {
	e := &entry{}
	e.describe(j, run)
	return e
}

// describe makes e the entry of j, without results. e must not be queued.
func (e *entry) describe(j execution.Job, run *matching.Run[*entry]) {
	e.job, e.marks = j, nil
	e.match = matching.Job[*entry]{
		Value: e, Run: run, Class: j.Class, Priority: j.Priority,
		Needs: matching.Resources{Resources: j.Needs(), Time: j.Estimate()},
	}
}

// mark records the progress of the result of the task with this index. It reports whether the job has such a task.
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

// complete reports whether the results of all the job's tasks have the mark m. Without any result it returns false.
func (e *entry) complete(m mark) bool {
	for _, have := range e.marks {
		if have&m == 0 {
			return false
		}
	}
	return e.marks != nil
}

// unrecorded reports whether the job has a result that the sink has not recorded. Such a task has run, whatever its
// worker later reports about the job.
func (e *entry) unrecorded() bool {
	for _, have := range e.marks {
		if have&received != 0 && have&recorded == 0 {
			return true
		}
	}
	return false
}

// renew resets e to its state before it was assigned to a worker.
func (e *entry) renew() {
	e.sent, e.recalled = false, false
}
