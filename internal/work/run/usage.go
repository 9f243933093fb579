package run

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/store"
)

// accountEvery is at most how old what the store knows of a run's usage is. The end of a run is written in the
// transaction that ends it.
const accountEvery = 15 * time.Second

// A tab is what the store has of what a run's tasks took. The journal is the truth, and what is written is a total: the
// first time after a start of corrald all of it is replaced by what the journal says, and then the rows that differ. So
// whatever was written before a crash is neither lost nor counted twice.
type tab struct {
	kept     map[store.UsageKey]store.Taken // nil: not known
	attempts map[string]corral.JobID        // :: tag → attempt, 0 if there is none
	due      time.Time
	heard    time.Time // when the journal ended that the run was opened with
}

// account has the store know what the tasks took up to now, but not too often.
func (p *progress) account(ctx context.Context, now time.Time, x *execution.Execution) {
	if now.Before(p.tab.due) {
		return
	}
	p.tab.due = now.Add(accountEvery)
	// What ran when corrald was last here may have ended since: its workers have yet to say so.
	until := now
	if p.tab.kept == nil {
		until = p.tab.heard
	}
	var rows map[store.UsageKey]store.Taken
	err := p.db.Write(ctx, actor, func(tx *store.Tx) (err error) {
		rows, err = p.tab.write(tx, p.row.ID, execution.WorkerHours(x, until))
		return err
	})
	if err != nil {
		p.lg.Warn("saving what the run's tasks took", "error", err)
		return
	}
	p.tab.kept = rows
}

// write stores the rows that differ from those that are kept, and returns all of them: those that the store has once
// the transaction is committed.
func (t *tab) write(
	tx *store.Tx, run corral.RunID, hours []execution.WorkerHour,
) (map[store.UsageKey]store.Taken, error) {
	rows, err := t.rows(tx, hours)
	if err != nil {
		return nil, err
	}
	for k := range t.kept { // what seemed to run there did not
		if _, still := rows[k]; !still {
			rows[k] = store.Taken{}
		}
	}
	differ := maps.Clone(rows)
	maps.DeleteFunc(differ, func(k store.UsageKey, v store.Taken) bool {
		was, known := t.kept[k]
		return known && was == v
	})
	if t.kept != nil && len(differ) == 0 {
		return rows, nil
	}
	return rows, tx.SetUsage(run, differ, t.kept == nil)
}

// rows adds the workers of each attempt up. A worker's name begins with the tag of its attempt.
func (t *tab) rows(tx *store.Tx, hours []execution.WorkerHour) (map[store.UsageKey]store.Taken, error) {
	if t.attempts == nil {
		t.attempts = map[string]corral.JobID{}
	}
	rows := map[store.UsageKey]store.Taken{}
	for _, s := range hours {
		tag, _, _ := strings.Cut(s.Worker, "/")
		id, known := t.attempts[tag]
		if !known {
			job, err := tx.JobTagged(tag)
			if err != nil && corral.KindOf(err) != corral.NotFound {
				return nil, err
			}
			id = job.ID // 0: a slot that no pilot of ours brought
			t.attempts[tag] = id
		}
		k := store.UsageKey{Attempt: id, Hour: s.Hour}
		v := rows[k]
		v.Used += usage.CoreTime(s.Used)
		v.Lost += usage.CoreTime(s.Lost)
		rows[k] = v
	}
	return rows, nil
}
