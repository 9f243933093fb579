package pool

import (
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// A mark says how far the result of one task has come.
type mark uint8

const (
	received mark = 1 << iota // by the dispatcher
	recorded                  // by the sink
)

// An entry is a job that the dispatcher has: queued, on its way to a worker, or held by one. The
// dispatcher's lock guards all of it but job and estimate, which never change once it is queued.
type entry struct {
	job      execution.Job
	estimate time.Duration // of the whole job
	arrived  int64         // order of submission; breaks ties of priority
	index    int           // in its bucket's heap; -1 when it is not queued

	overtaken time.Time // when a job behind it first started on a worker that could hold it
	reserved  *bench    // kept free for it, after it was overtaken for too long

	begun     time.Time     // when it is believed to have started on its worker, or to wait there
	expected  time.Duration // what the dispatcher thought that it would really take
	sent      bool          // to the worker that holds it; else its intent is still being recorded
	recalled  bool          // its worker was asked to hand it back
	cancelled bool          // its run was cancelled, or nobody claims it
	marks     []mark        // of its tasks, once there are results
}

func newEntry(j execution.Job) *entry { return &entry{job: j, estimate: j.Estimate(), index: -1} }

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

// complete reports whether the results of all its tasks have come as far as m.
func (e *entry) complete(m mark) bool {
	for _, have := range e.marks {
		if have&m == 0 {
			return false
		}
	}
	return e.marks != nil
}

// unrecorded reports whether a result came that the sink has not recorded.
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
	e.begun, e.expected, e.sent, e.recalled = time.Time{}, 0, false, false
}
