package store

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A run's tasks are not stored here: internal/work/run keeps them in the journal in the run's directory and stores here
// only the data that lists and waits need: the number of tasks in each state and, once the run has ended, its report.

// liveRun matches a run that is not Over. The index uses exactly this text.
const liveRun = "state in ('RUNNING', 'CANCELLING')"

var runs = table[corral.Run]{
	noun:  corral.ObjectRun,
	name:  "runs",
	owner: "owner",
	columns: func(r *corral.Run) []column {
		return []column{
			{"id", orNull(&r.ID)},
			{"owner", &r.Owner},
			{"cluster_id", &r.Cluster},
			{"workflow", &r.Workflow},
			{"dir", &r.Dir},
			{"options", asJSON(&r.Options)},
			{"labels", asJSON(&r.Labels)},
			{"state", &r.State},
			{"reason", &r.Reason},
			{"tasks_total", &r.Tasks.Total},
			{"tasks_waiting", &r.Tasks.Waiting},
			{"tasks_ready", &r.Tasks.Ready},
			{"tasks_running", &r.Tasks.Running},
			{"tasks_done", &r.Tasks.Done},
			{"tasks_failed", &r.Tasks.Failed},
			{"tasks_skipped", &r.Tasks.Skipped},
			{"report", asJSON(&r.Report)},
			{"created_at_ms", at(&r.CreatedAt)},
			{"ended_at_ms", at(&r.EndedAt)},
			{"updated_at_ms", at(&r.UpdatedAt)},
			{"(select name from clusters where clusters.id = cluster_id)", &r.ClusterName},
		}
	},
	about: func(r corral.Run) []Subject {
		return []Subject{{corral.ObjectRun, int64(r.ID)}}
	},
}

// A RunFilter selects runs; each field that is set narrows the selection.
type RunFilter struct {
	Filter
	Cluster corral.ClusterID
	States  []corral.RunState // in one of these
	Labels  map[string]string // must contain all of these
}

// FreeRunDir returns a Conflict error if a directory belongs to a run that is not DELETED.
func (t *Tx) FreeRunDir(dir string) error {
	return runs.free(t, func(other corral.Run) error {
		return corral.Errorf(corral.Conflict, "directory %s belongs to run %d", dir, other.ID)
	}, "dir = ? and state <> 'DELETED'", dir)
}

// CreateRun stores r as RUNNING and sets its ID, State and times. r's Reason describes anything that the run lacks now.
// CreateRun returns a Conflict error if r's directory is not free.
func (t *Tx) CreateRun(r corral.Run) (corral.Run, error) {
	if err := t.FreeRunDir(r.Dir); err != nil {
		return corral.Run{}, err
	}
	r.ID, r.Report, r.EndedAt = 0, nil, time.Time{}
	r.State, r.CreatedAt, r.UpdatedAt = corral.RunRunning, t.now, t.now
	return runs.create(t, r, string(r.State))
}

// Run returns the run with this id, DELETED or not.
func (t *Tx) Run(id corral.RunID) (corral.Run, error) {
	return runs.one(t, id, "id = ?", id)
}

// Runs lists runs.
func (t *Tx) Runs(f RunFilter) ([]corral.Run, error) {
	var c conditions
	if f.Cluster != 0 {
		c.add("cluster_id = ?", f.Cluster)
	}
	if len(f.States) > 0 {
		states, err := json.Marshal(f.States)
		if err != nil {
			return nil, err // unreachable: strings
		}
		c.add("state in (select value from json_each(?))", string(states))
	}
	c.labels(f.Labels)
	f.All = f.All || slices.Contains(f.States, corral.RunDeleted)
	c.filter(f.Filter)
	return runs.list(t, c)
}

// LearnedRuns lists the latest runs of an owner's workflow that learned memory and are not DELETED: at most limit of
// them, oldest first.
func (t *Tx) LearnedRuns(owner, workflow string, limit int) ([]corral.Run, error) {
	c := where("workflow = ? and json_extract(report, '$.learned_memory') is not null", workflow)
	c.order = "id desc"
	c.filter(Filter{Owner: owner, Page: Page{Limit: limit}})
	latest, err := runs.list(t, c)
	slices.Reverse(latest)
	return latest, err
}

// MoveRun applies move to a run.
func (t *Tx) MoveRun(id corral.RunID, move corral.RunMove, reason string) (corral.Run, error) {
	return runs.move(t, id, func(r corral.Run) (corral.Run, []corral.Entry, error) {
		return r.Apply(move, reason, t.now)
	})
}

// SetRun stores the numbers of tasks by state and, unless it is nil, the report. Only a run that is over can have a
// report: move it first, in the same transaction. Otherwise the result is a Conflict error.
func (t *Tx) SetRun(id corral.RunID, tasks corral.RunTasks, report *corral.RunReport) (corral.Run, error) {
	return runs.set(t, id, func(r *corral.Run) error {
		if report != nil && !r.State.Over() {
			return corral.Errorf(corral.Conflict, "run %d is %s: too early for its report", id, r.State)
		}
		r.Report = cmp.Or(report, r.Report)
		r.Tasks, r.UpdatedAt = tasks, t.after(r.UpdatedAt)
		return nil
	})
}

// NoteRun stores the reason why a RUNNING run makes no progress; "" clears it. This is not a move and leaves no
// history entry. In any other state the reason belongs to the last move, and NoteRun returns a Conflict error.
func (t *Tx) NoteRun(id corral.RunID, reason string) (corral.Run, error) {
	return runs.set(t, id, func(r *corral.Run) error {
		if r.State != corral.RunRunning {
			return corral.Errorf(corral.Conflict, "run %d is %s: its reason is that of its last move", id, r.State)
		}
		r.Reason, r.UpdatedAt = reason, t.after(r.UpdatedAt)
		return nil
	})
}
