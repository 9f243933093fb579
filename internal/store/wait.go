package store

import (
	"database/sql"
	"fmt"
	"slices"

	"github.com/corral-pilot/corral"
)

// A WaitFilter selects waits; each field that is set narrows the selection.
type WaitFilter struct {
	Site  corral.SiteID
	Name  string // of the site, including DELETED sites that had the name before
	Owner string // of the site
	Last  int    // maximum number, the most recently submitted; 0: no limit
}

// Estimates of future waits are based on past ones, with the site, queue and shape of the attempt, because larger and
// longer jobs wait longer.

// workersAndCancelled are the times at which a job's first worker registered, and at which it was last cancelled.
const workersAndCancelled = `
	(select min(at_ms) from history where object = 'job' and object_id = jobs.id and event = 'workers'),
	(select max(at_ms) from history where object = 'job' and object_id = jobs.id and event = 'cancel')`

// Waits lists the times that attempts waited in their sites' queues, in the order in which the sites accepted them. It
// includes attempts of DELETED glideins and sites, but not those that a site never accepted.
func (t *Tx) Waits(f WaitFilter) ([]corral.Wait, error) {
	c := conditions{order: "submitted_at_ms desc, jobs.id desc", limit: f.Last}
	c.add("jobs.kind = 'pilot' and submitted_at_ms is not null")
	term, of := t.seesOwner("glideins.owner")
	c.add(term, of...)
	if f.Site != 0 {
		c.add("jobs.site_id = ?", f.Site)
	}
	if f.Name != "" {
		c.add("jobs.site_id in (select id from sites where name = ?)", f.Name)
	}
	if f.Owner != "" {
		c.add("jobs.site_id in (select id from sites where owner = ?)", f.Owner)
	}
	var list []corral.Wait
	defaults := map[corral.SiteID]string{}
	var ofSites []corral.SiteID
	err := t.rows(`
		select
			jobs.site_id,
			sites.name,
			jobs.queue,
			coalesce(nullif(glideins.account, ''), sites.account),
			coalesce(nullif(glideins.qos, ''), sites.qos),
			coalesce(nullif(glideins.features, ''), sites.features),
			hosts,
			cpus,
			memory_mib,
			gpus,
			walltime_ms,
			submitted_at_ms,
			started_at_ms,
			`+workersAndCancelled+`,
			ended_at_ms,
			outcome
		from jobs
		join glideins on glideins.id = glidein_id
		join sites on sites.id = jobs.site_id`+c.clause(), c.args, func(rows *sql.Rows) error {
		var w corral.Wait
		var site corral.SiteID
		err := rows.Scan(&site, &w.Site, &w.Queue, &w.Account, &w.QOS, &w.Constraint, &w.Hosts, &w.CPUs, &w.MemoryMiB,
			&w.GPUs, ms(&w.Walltime), at(&w.SubmittedAt), at(&w.StartedAt), at(&w.WorkersAt), at(&w.CancelledAt),
			at(&w.EndedAt), orNull(&w.Outcome))
		list, ofSites, defaults[site] = append(list, w), append(ofSites, site), ""
		return err
	})
	for site := range defaults {
		if err == nil {
			defaults[site], err = t.defaultQueue(site)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing waits: %w", err)
	}
	for i, site := range ofSites {
		list[i].Default = defaults[site]
	}
	slices.Reverse(list)
	return list, nil
}

// defaultQueue returns the name of the queue that a site uses for jobs that name none, or "" if that is unknown.
func (t *Tx) defaultQueue(id corral.SiteID) (string, error) {
	s, err := t.Site(id)
	if err != nil {
		return "", err
	}
	q, _ := s.Facts.In("")
	return q.Name, nil
}
