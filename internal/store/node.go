package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// An attempt goes on without hosts that fail, and says which: what they were is in the jobs that lost them, and nowhere
// else. A table of nodes has only until when what was lost there is forgotten, because workers have come to life there
// since, or because a person has said so. Nodes are compared by their short names, as sites write them both ways.

// BadNodes lists the nodes that an attempt of so many hosts in a site's queue would avoid now, the site's own if none
// is named.
func (t *Tx) BadNodes(site corral.Site, queue string, hosts int) ([]corral.BadNode, error) {
	losing, err := t.losingJobs(site.ID)
	if err != nil || len(losing) == 0 {
		return nil, err
	}
	cleared, err := t.clearedNodes(site.ID)
	return corral.BadNodes(losing, cleared, site.Nodes(cmp.Or(queue, site.Queue)), hosts, t.now), err
}

// losingJobs lists a site's attempts that lost hosts and may count still, the last to change first, a thousand at most.
func (t *Tx) losingJobs(site corral.SiteID) ([]corral.Job, error) {
	// A job changes when it loses a host, and losses count for AvoidFor, so older jobs have none that count.
	since := t.now.Add(-corral.AvoidFor)
	c := conditions{order: "updated_at_ms desc", limit: 1000}
	c.add("lost is not null")
	c.add("site_id = ?", site)
	c.add("updated_at_ms >= ?", at(&since))
	return jobs.list(t, c)
}

// clearedNodes says until when it is forgotten what attempts lost on a site's nodes, by short name.
func (t *Tx) clearedNodes(site corral.SiteID) (map[string]time.Time, error) {
	cleared := map[string]time.Time{}
	err := t.rows("select name, cleared_at_ms from nodes where site_id = ?", []any{site}, func(rows *sql.Rows) error {
		var name string
		var until time.Time
		err := rows.Scan(&name, at(&until))
		cleared[name] = until
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing nodes of site %d: %w", site, err)
	}
	return cleared, nil
}

// clearNode forgets what attempts lost on a site's node until then, or later if that is forgotten already.
func (t *Tx) clearNode(site corral.SiteID, name string, until time.Time) error {
	_, err := t.exec(`
		insert into nodes (site_id, name, cleared_at_ms) values (?, ?, ?)
		on conflict do update set cleared_at_ms = excluded.cleared_at_ms where excluded.cleared_at_ms > cleared_at_ms`,
		site, name, at(&until))
	if err != nil {
		return fmt.Errorf("clearing node %s of site %d: %w", name, site, err)
	}
	return nil
}

// NoteHosts records when workers have come to life on hosts of a site: its nodes work, whatever failed there before.
func (t *Tx) NoteHosts(site corral.SiteID, hosts map[string]time.Time) error {
	for host, registered := range hosts {
		if short := corral.ShortName(host); short != "" {
			if err := t.clearNode(site, short, registered); err != nil {
				return err
			}
		}
	}
	return nil
}

// ForgiveNodes forgets what attempts have lost so far on nodes of a site, on all if none is named, and says so in the
// site's history. A node of which there is nothing to forget stays as it is; one that was never heard of is a NotFound
// error.
func (t *Tx) ForgiveNodes(id corral.SiteID, names ...string) error {
	last, err := t.lastLost(id)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(last))
	}
	for _, name := range names {
		if _, known := last[corral.ShortName(name)]; !known {
			return t.strangeNode(id, name)
		}
	}
	var said []string
	for _, name := range names {
		short := corral.ShortName(name)
		l := last[short]
		if l.At.IsZero() {
			continue
		}
		// The loss may be in the future of a clock that was set back since.
		if err := t.clearNode(id, short, latest(t.now, l.At)); err != nil {
			return err
		}
		last[short] = corral.LostHost{}
		said = append(said, l.String())
	}
	if len(said) == 0 {
		return nil
	}
	return t.Log(corral.ObjectSite, int64(id), "forgive", strings.Join(said, "; "))
}

// lastLost returns the host that was lost last on each node of a site that is known, by short name; its zero value
// where that is forgotten, or none was.
func (t *Tx) lastLost(site corral.SiteID) (map[string]corral.LostHost, error) {
	losing, err := t.losingJobs(site)
	if err != nil {
		return nil, err
	}
	cleared, err := t.clearedNodes(site)
	if err != nil {
		return nil, err
	}
	last := map[string]corral.LostHost{}
	for name := range cleared {
		last[name] = corral.LostHost{}
	}
	for _, j := range losing {
		for _, l := range j.Lost {
			short := corral.ShortName(l.Node)
			if short == "" || !l.At.After(cleared[short]) {
				continue
			}
			if l.At.After(last[short].At) {
				last[short] = l
			}
		}
	}
	return last, nil
}

// strangeNode is the error for a node of which nothing is known at a site. It names the nodes that could be meant.
func (t *Tx) strangeNode(id corral.SiteID, name string) error {
	site, err := t.Site(id)
	if err != nil {
		return err
	}
	bad, err := t.BadNodes(site, "", 1)
	if err != nil {
		return err
	}
	var avoided []string
	for _, b := range bad {
		avoided = append(avoided, b.Node)
	}
	return corral.Errorf(corral.NotFound,
		"nothing is known of a node %.80q at site %s; those that are avoided there: %s",
		name, site.Name, cmp.Or(strings.Join(avoided, ", "), "none"))
}
