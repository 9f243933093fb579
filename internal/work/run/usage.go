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

// accountEvery is the maximum age of a run's usage in the store. The final usage is written in the transaction that
// ends the run.
const accountEvery = 15 * time.Second

// A tab tracks the stored usage of a run's tasks. The journal is authoritative, and the stored values are totals: the
// first write after a start of corrald replaces all of them by the totals from the journal, and later writes replace
// the rows that differ. So usage written before a crash is neither lost nor counted twice.
type tab struct {
	kept     map[store.UsageKey]store.Taken // nil: unknown
	attempts map[string]corral.JobID        // :: tag → attempt, or 0 if there is none
	due      time.Time
	heard    time.Time // time of the last record when the run was opened
}

// account stores the usage of the tasks up to now, but not too often.
func (p *progress) account(ctx context.Context, now time.Time, x *execution.Execution) {
	if now.Before(p.tab.due) {
		return
	}
	p.tab.due = now.Add(accountEvery)
	// Tasks that ran when corrald last stopped may have ended since, but their workers have not reported it yet.
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
		p.lg.Warn("saving the usage of the run's tasks", "error", err)
		return
	}
	p.tab.kept = rows
}

// write stores the rows that differ from those in kept, and returns all rows that the store contains once the
// transaction is committed.
func (t *tab) write(
	tx *store.Tx, run corral.RunID, hours []execution.WorkerHour,
) (map[store.UsageKey]store.Taken, error) {
	rows, err := t.rows(tx, hours)
	if err != nil {
		return nil, err
	}
	for k := range t.kept { // tasks only seemed to run there
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

// rows sums the usage of the workers of each attempt. A worker's name begins with the tag of its attempt.
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
			id = job.ID // 0: the slot does not belong to a pilot of Corral
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
