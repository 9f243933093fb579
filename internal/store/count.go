package store

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// What a service is watched by is counted here, in SQL: reading each of ten thousand rows to count them would take
// longer than all else that a scrape does.

// A Count is how many objects are in a state.
type Count struct {
	Site  string // by name; empty for what has no site
	State string
	N     int
}

// counted are the queries of Counts, by kind of object. DELETED objects are tombstones and do not count. Of jobs the
// live attempts count: liveJob has an index.
var counted = map[string]string{
	corral.ObjectSite: "select '', state, count(*) from sites where state <> 'DELETED' group by state",
	corral.ObjectRun:  "select '', state, count(*) from runs where state <> 'DELETED' group by state",
	corral.ObjectGlidein: `
		select sites.name, glideins.state, count(*)
		from glideins
		join sites on sites.id = site_id
		where glideins.state <> 'DELETED' and sites.state <> 'DELETED'
		group by site_id, glideins.state`,
	corral.ObjectJob: `
		select sites.name, jobs.state, count(*)
		from jobs
		join sites on sites.id = site_id
		where jobs.state <> 'ENDED' and kind = 'pilot' and sites.state <> 'DELETED'
		group by site_id, jobs.state`,
}

// Counts counts objects of a kind by state, glideins and the attempts that are live also by site. What there is none of
// is left out.
func (t *Tx) Counts(object string) ([]Count, error) {
	query, known := counted[object]
	if !known {
		return nil, corral.Errorf(corral.Internal, "nobody counts objects called %q", object)
	}
	var all []Count
	err := t.rows(query, nil, func(rows *sql.Rows) error {
		var c Count
		err := rows.Scan(&c.Site, &c.State, &c.N)
		all = append(all, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("counting objects called %s: %w", object, err)
	}
	return all, nil
}

// TasksEnded returns how many tasks of all runs that ever were are done, and how many have failed for good.
func (t *Tx) TasksEnded() (done, failed int64, err error) {
	err = t.row("select coalesce(sum(tasks_done), 0), coalesce(sum(tasks_failed), 0) from runs", nil, &done, &failed)
	if err != nil {
		return 0, 0, fmt.Errorf("counting tasks: %w", err)
	}
	return done, failed, nil
}

// OldestQueued returns when the attempt was submitted that has waited longest in a site's queue, by the name of the
// site; sites in whose queue nothing waits are left out.
func (t *Tx) OldestQueued() (map[string]time.Time, error) {
	oldest := map[string]time.Time{}
	err := t.rows(`
		select sites.name, min(submitted_at_ms)
		from jobs
		join sites on sites.id = site_id
		where jobs.state <> 'ENDED' and jobs.state in ('SUBMITTED', 'QUEUED') and kind = 'pilot'
		group by site_id`, nil, func(rows *sql.Rows) error {
		var site string
		var since time.Time
		err := rows.Scan(&site, at(&since))
		oldest[site] = since
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what waits in queues: %w", err)
	}
	return oldest, nil
}
