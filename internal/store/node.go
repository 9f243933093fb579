package store

import (
	"cmp"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// An attempt continues without hosts that fail and reports them: the losses are recorded only in the jobs that lost
// hosts. The table of nodes stores only the time up to which a node's losses are ignored, because workers have since
// started there or a person has forgiven them. Nodes are compared by their short names, because sites use both forms.

// BadNodes lists the nodes that an attempt with this number of hosts in a site's queue would avoid now. An empty
// queue means the site's own.
func (t *Tx) BadNodes(site corral.Site, queue string, hosts int) ([]corral.BadNode, error) {
	losing, err := t.losingJobs(site.ID)
	if err != nil || len(losing) == 0 {
		return nil, err
	}
	cleared, err := t.clearedNodes(site.ID)
	return corral.BadNodes(losing, cleared, site.Nodes(cmp.Or(queue, site.Queue)), hosts, t.now), err
}

// losingJobs lists a site's attempts that lost hosts and may still count, the most recently changed first, at most a
// thousand.
func (t *Tx) losingJobs(site corral.SiteID) ([]corral.Job, error) {
	// A job is updated when it loses a host, and losses count for AvoidFor, so older jobs have no losses that count.
	since := t.now.Add(-corral.AvoidFor)
	c := conditions{order: "updated_at_ms desc", limit: 1000}
	c.add("lost is not null")
	c.add("site_id = ?", site)
	c.add("updated_at_ms >= ?", at(&since))
	return jobs.list(t, c)
}

// clearedNodes returns, by the node's short name, the time up to which losses at a site are ignored.
func (t *Tx) clearedNodes(site corral.SiteID) (map[string]time.Time, error) {
	cleared := map[string]time.Time{}
	err := t.rows("select name, cleared_at_ms from nodes where site_id = ?", []any{site}, func(rows *sql.Rows) error {
		var name string
		var until time.Time
		err := rows.Scan(&name, at(&until))
		cleared[name] = until
		return err
	})
	return cleared, wrap.Errorf(err, "listing nodes of site %d", site)
}

// clearNode ignores the losses on a site's node up to a time, unless they are already ignored up to a later one.
func (t *Tx) clearNode(site corral.SiteID, name string, until time.Time) error {
	_, err := t.exec(`
		insert into nodes (site_id, name, cleared_at_ms) values (?, ?, ?)
		on conflict do update set cleared_at_ms = excluded.cleared_at_ms where excluded.cleared_at_ms > cleared_at_ms`,
		site, name, at(&until))
	return wrap.Errorf(err, "clearing node %s of site %d", name, site)
}

// NoteHosts records the times at which workers started on hosts of a site: these nodes work, regardless of earlier
// failures there.
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

// ForgiveNodes ignores the losses so far on nodes of a site, on all nodes if none is named, and logs that in the
// site's history. A node without losses stays unchanged; for an unknown node the error is NotFound.
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
		// If the clock was set back, the loss may lie in the future.
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

// lastLost returns the most recent loss on each known node of a site, by short name. The value is zero if the losses
// are ignored or the node has none.
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

// strangeNode returns the error for an unknown node. It names the nodes that are avoided, one of which is probably
// meant.
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
		"no failures are recorded for node %.80q at site %s; nodes avoided there: %s",
		name, site.Name, cmp.Or(strings.Join(avoided, ", "), "none"))
}
