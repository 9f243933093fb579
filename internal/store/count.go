package store

import (
	"database/sql"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// The figures for monitoring are counted here, in SQL, because reading ten thousand rows to count them would take
// longer than everything else in a scrape.

// A Count is the number of an owner's objects in one state.
type Count struct {
	Owner string        // the site's owner, for objects that belong to a site
	Site  corral.SiteID // 0: not specific to a site
	State string
	N     int
}

// counted holds the queries of Counts, by kind of object. DELETED objects are tombstones and do not count. Only live
// jobs are counted, because liveJob has an index.
var counted = map[string]string{
	corral.ObjectSite: "select owner, 0, state, count(*) from sites where state <> 'DELETED' group by owner, state",
	corral.ObjectRun:  "select owner, 0, state, count(*) from runs where state <> 'DELETED' group by owner, state",
	corral.ObjectGlidein: `
		select sites.owner, site_id, glideins.state, count(*)
		from glideins
		join sites on sites.id = site_id
		where glideins.state <> 'DELETED' and sites.state <> 'DELETED'
		group by site_id, glideins.state`,
	corral.ObjectJob: `
		select sites.owner, site_id, jobs.state, count(*)
		from jobs
		join sites on sites.id = site_id
		where jobs.state <> 'ENDED' and kind = 'pilot' and sites.state <> 'DELETED'
		group by site_id, jobs.state`,
}

// Counts counts objects of a kind by state and owner, and glideins and live attempts also by site. Combinations
// without objects are left out.
func (t *Tx) Counts(object string) ([]Count, error) {
	query, known := counted[object]
	if !known {
		return nil, corral.Errorf(corral.Internal, "there is no query that counts objects called %q", object)
	}
	all, err := collect(t, query, nil, func(c *Count) []any { return []any{&c.Owner, &c.Site, &c.State, &c.N} })
	return all, wrap.Errorf(err, "counting objects called %s", object)
}

// TasksOver holds the numbers of done and failed tasks in all runs that an owner ever had.
type TasksOver struct {
	Owner        string
	Done, Failed int64 // Failed: with no retry left
}

// TasksEnded counts the tasks that have ended, by the owner of their runs.
func (t *Tx) TasksEnded() ([]TasksOver, error) {
	all, err := collect(t, "select owner, sum(tasks_done), sum(tasks_failed) from runs group by owner", nil,
		func(o *TasksOver) []any { return []any{&o.Owner, &o.Done, &o.Failed} })
	return all, wrap.Errorf(err, "counting tasks")
}

// OldestQueued returns, for each site, the submission time of the attempt that has waited longest in its queue. Sites
// with empty queues are left out.
func (t *Tx) OldestQueued() (map[corral.SiteID]time.Time, error) {
	oldest := map[corral.SiteID]time.Time{}
	err := t.rows(`
		select site_id, min(submitted_at_ms)
		from jobs
		where jobs.state <> 'ENDED' and jobs.state in ('SUBMITTED', 'QUEUED') and kind = 'pilot'
		group by site_id`, nil, func(rows *sql.Rows) error {
		var site corral.SiteID
		var since time.Time
		err := rows.Scan(&site, at(&since))
		oldest[site] = since
		return err
	})
	return oldest, wrap.Errorf(err, "reading the queued attempts")
}
