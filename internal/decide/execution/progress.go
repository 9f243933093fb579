package execution

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Progress is the progress of one task, for planning the rest of a run.
type Progress struct {
	State  corral.TaskState
	Worker string    // worker that has the task, or did it; else empty
	Since  time.Time // only if it runs: when the worker received it, or when the previous task of its job ended
	Took   time.Duration
}

// ProgressOf returns the progress of all tasks, by index. Took is the runtime of a task that is done. A worker may have
// more tasks than cpus: only the worker knows which of them run. A task whose POST script runs does not have a worker.
func ProgressOf(x *Execution) []Progress {
	all := make([]Progress, len(x.units.tasks))
	for k := range all {
		all[k] = ProgressAt(x, k)
	}
	return all
}

// ProgressAt returns the progress of one task.
func ProgressAt(x *Execution, k int) (p Progress) {
	u := &x.units.tasks[k]
	p.State = u.state.task()
	switch u.state {
	case StateBehind, StateRunning:
		p.Worker, p.Since = x.roster.workers[u.job.worker].name, u.job.busyFrom.Time()
	case StateDone:
		if u.started != 0 {
			p.Took = max(0, u.ended.sub(u.started))
			p.Worker = x.roster.workers[u.worker].name // "" for 0
		}
	}
	return p
}
