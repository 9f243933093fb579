package provision

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// Unfinished represents the current state of a run whose remaining work is to be planned.
type Unfinished struct {
	Run      corral.Run
	Progress []execution.Progress // of its tasks
	Glideins []corral.Glidein     // of its cluster
	Workers  []corral.Worker      // of its cluster
	Now      time.Time

	Transfers Transfers       // to the sites of its workers
	Guesses   map[string]bool // kinds of tasks whose estimates are only assumed
}

// Left returns the remainder of the run's problem, as a revision of its plan would see it now: estimates are corrected
// by the tasks that have ended, and running tasks remain where they are. Workers that a plan of the run has requested
// count as present, like other workers. A run that is over is planned as if it were resumed: failed tasks are tried
// again. Left returns a Conflict error if no work is left.
func (u Unfinished) Left(whole plan.Problem) (plan.Problem, error) {
	s := sight{underway: underway{run: u.Run, plan: corral.Plan{BeganAt: u.Now}}, now: u.Now, workers: u.Workers,
		progress: u.progress(), others: u.Glideins, ours: u.Run.Labels[corral.PlanLabel]}
	whole.Cluster = ofTask(whole, u.Run.Options.Clustering)
	v := revision.View{Problem: whole, Guesses: u.Guesses}
	s.tasks(&v, nil)
	u.Transfers.Carry(&v.Problem)
	left := revision.Left(v)
	if len(left.Work.Tasks) == 0 {
		return left, corral.ErrorAt(corral.Conflict, "run_id", "nothing is left of run %d: it is %s", u.Run.ID,
			u.Run.State)
	}
	return left, nil
}

// Rest reports whether a task, by its index, is part of the remaining work.
func (u Unfinished) Rest() func(task int) bool {
	progress := u.progress()
	over := []corral.TaskState{corral.TaskDone, corral.TaskFailed, corral.TaskSkipped}
	return func(i int) bool { return !slices.Contains(over, progress[i].State) }
}

// progress returns the progress of the tasks or, for a run that is over, the progress that they will have once the run
// is resumed.
func (u Unfinished) progress() []execution.Progress {
	if !u.Run.State.Over() {
		return u.Progress
	}
	all := make([]execution.Progress, len(u.Progress))
	for i, p := range u.Progress {
		all[i] = execution.Progress{State: corral.TaskWaiting}
		if p.State == corral.TaskDone {
			all[i] = p
		}
	}
	return all
}
