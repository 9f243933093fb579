package store

import (
	"database/sql"
	"fmt"
	"slices"

	"github.com/corral-pilot/corral"
)

// A WaitFilter selects waits; every field that is set narrows the selection.
type WaitFilter struct {
	Site corral.SiteID
	Name string // of the site: also of those that had it before and are DELETED
	Last int    // at most so many, those that were submitted last; 0: no limit
}

// Past waits are what estimates of future ones are made from: with the site, queue and shape of the attempt, because
// larger and longer jobs wait longer.

// Waits lists how long attempts waited in their sites' queues, in the order in which the sites accepted them.
// Attempts of glideins and sites that are DELETED are among them; those that a site never accepted are not.
func (t *Tx) Waits(f WaitFilter) ([]corral.Wait, error) {
	c := conditions{order: "submitted_at_ms desc, jobs.id desc", limit: f.Last}
	c.add("jobs.kind = 'pilot' and submitted_at_ms is not null")
	if f.Site != 0 {
		c.add("jobs.site_id = ?", f.Site)
	}
	if f.Name != "" {
		c.add("jobs.site_id in (select id from sites where name = ?)", f.Name)
	}
	var list []corral.Wait
	err := t.rows(`
		select
			sites.name,
			jobs.queue,
			hosts,
			cpus,
			walltime_ms,
			submitted_at_ms,
			started_at_ms,
			ended_at_ms,
			outcome
		from jobs
		join glideins on glideins.id = glidein_id
		join sites on sites.id = jobs.site_id`+c.clause(), c.args, func(rows *sql.Rows) error {
		var w corral.Wait
		err := rows.Scan(&w.Site, &w.Queue, &w.Hosts, &w.CPUs, ms(&w.Walltime),
			at(&w.SubmittedAt), at(&w.StartedAt), at(&w.EndedAt), orNull(&w.Outcome))
		list = append(list, w)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing waits: %w", err)
	}
	slices.Reverse(list)
	return list, nil
}
