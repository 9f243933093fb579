package execution

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Progress says how far one task is, for those that plan what is left of a run.
type Progress struct {
	State  corral.TaskState
	Worker string    // that has it, or had it when it was done; else empty
	Since  time.Time // when its worker was given it, of a clustered job when the task before it ended; only if it runs
	Took   time.Duration
}

// ProgressOf tells of all tasks, by index. Took is how long a task ran that is done. A worker may have more tasks than
// it has cpus for: which of them run, it alone knows.
func ProgressOf(x *Execution) []Progress {
	all := make([]Progress, len(x.attempts.tasks))
	for k := range all {
		i, p, t := int32(k), &all[k], &x.attempts.tasks[k]
		p.State = corral.TaskState(x.frontier.state(i).String())
		if e := x.book.of[i]; e != nil && e.worker != 0 {
			p.State, p.Worker, p.Since = corral.TaskRunning, x.roster.workers[e.worker].name, e.busyFrom.Time()
		}
		if p.State == corral.TaskDone && t.started != 0 {
			p.Took = max(0, t.ended.sub(t.started))
			if t.worker != 0 {
				p.Worker = x.roster.workers[t.worker].name
			}
		}
	}
	return all
}
