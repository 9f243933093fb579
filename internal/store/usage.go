package store

import (
	"database/sql"
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// The time that attempts held follows from their rows. The time that tasks used is in the journals of runs, which may
// be megabytes in size and are deleted with the run's directory; so a run's driver stores here the totals of its
// journal, by attempt and hour.

// A UsageKey identifies a row of a run's usage: an attempt, or 0 for CPUs outside any pilot, and an hour since 1970.
type UsageKey struct {
	Attempt corral.JobID
	Hour    int64
}

// Taken is the core time that tasks used: for results that count, and for work that had to be repeated.
type Taken struct{ Used, Lost usage.CoreTime }

// SetUsage replaces the given rows of a run's usage or, with anew, all of its rows. The values are totals, so a
// repetition changes nothing. It returns a Forbidden error if one of the attempts does not belong to the run's owner.
func (t *Tx) SetUsage(run corral.RunID, rows map[UsageKey]Taken, anew bool) error {
	r, err := t.Run(run)
	if err != nil {
		return err
	}
	checked := map[corral.JobID]bool{0: true}
	for k := range rows {
		if !checked[k.Attempt] {
			if err := t.usableAttempt(r.Owner, k.Attempt); err != nil {
				return err
			}
			checked[k.Attempt] = true
		}
	}
	if anew {
		if _, err := t.exec("delete from usage where run_id = ?", run); err != nil {
			return fmt.Errorf("replacing the usage of run %d: %w", run, err)
		}
	}
	for k, v := range rows {
		_, err := t.exec("insert or replace into usage (run_id, job_id, hour, used_ms, lost_ms) values (?, ?, ?, ?, ?)",
			run, k.Attempt, k.Hour, v.Used, v.Lost)
		if err != nil {
			return fmt.Errorf("storing run %d's usage of attempt %d: %w", run, k.Attempt, err)
		}
	}
	return nil
}

// usableAttempt refuses another owner's attempt.
func (t *Tx) usableAttempt(owner string, id corral.JobID) error {
	j, err := t.Job(id)
	if err != nil {
		return err
	}
	site, err := t.Site(j.Site)
	if err == nil {
		err = access.MayUse(owner, "attempt", j.Name(), site.Owner)
	}
	return err
}

// Holdings returns the cores that pilots' attempts held at any time in a window; attempts that are still live count
// until the transaction's time. Attempts whose start was never observed are left out.
func (t *Tx) Holdings(w usage.Window) ([]usage.Attempt, error) {
	var all []usage.Attempt
	term, of := t.seesOwner("glideins.owner")
	err := t.rows(`
		select
			jobs.id,
			glideins.owner,
			sites.name,
			coalesce((select workflow from plans where plans.id = cast(`+labelledPlan+` as integer)), ''),
			hosts * cpus,
			started_at_ms,
			ended_at_ms
		from sites
		join jobs on jobs.site_id = sites.id
		join glideins on glideins.id = glidein_id
		where kind = 'pilot' and started_at_ms is not null and started_at_ms < ?
			and (ended_at_ms is null or ended_at_ms > ?) and `+term,
		append([]any{w.Until.UnixMilli(), w.Since.UnixMilli()}, of...), func(rows *sql.Rows) error {
			var a usage.Attempt
			err := rows.Scan(&a.ID, &a.User, &a.Site, &a.Workflow, &a.Cores, at(&a.From), at(&a.To))
			if a.To.IsZero() {
				a.To = t.now
			}
			all = append(all, a)
			return err
		})
	return all, wrap.Errorf(err, "reading the pilots' holdings")
}

// Work returns the tasks' usage in the hours of a window, by run and attempt.
func (t *Tx) Work(w usage.Window) ([]usage.Work, error) {
	from, to := w.Hours()
	term, of := t.seesOwner("runs.owner")
	all, err := collect(t, `
		select
			job_id,
			runs.owner,
			coalesce(sites.name, ''),
			runs.workflow,
			sum(used_ms),
			sum(lost_ms)
		from usage
		join runs on runs.id = run_id
		left join jobs on jobs.id = job_id
		left join sites on sites.id = jobs.site_id
		where hour >= ? and hour < ? and `+term+`
		group by run_id, job_id`,
		append([]any{from, to}, of...), func(v *usage.Work) []any {
			return []any{&v.Attempt, &v.User, &v.Site, &v.Workflow, &v.Used, &v.Lost}
		})
	return all, wrap.Errorf(err, "reading the tasks' usage")
}
