package execution

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Progress is how far one task is, for planning the rest of a run.
type Progress struct {
	State  corral.TaskState
	Worker string    // that has the task, or had it when it was done; else empty
	Since  time.Time // when its worker was given it, of a clustered job when the task before it ended; only if it runs
	Took   time.Duration
}

// ProgressOf returns the progress of all tasks, by index. Took is how long a task ran that is done. A worker may have
// more tasks than it has cpus for: only the worker knows which of them run. A task whose POST script runs has no
// worker.
func ProgressOf(x *Execution) []Progress {
	all := make([]Progress, len(x.units.tasks))
	for k := range all {
		p, u := &all[k], &x.units.tasks[k]
		p.State = u.state.task()
		switch u.state {
		case StateBehind, StateRunning:
			p.Worker, p.Since = x.roster.workers[u.job.worker].name, u.job.busyFrom.Time()
		case StateDone:
			if u.started == 0 {
				continue
			}
			p.Took = max(0, u.ended.sub(u.started))
			p.Worker = x.roster.workers[u.worker].name // "" for 0
		}
	}
	return all
}
