package store

import (
	"cmp"
	"database/sql"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// liveGlidein matches a glidein that is not Terminal. The indexes use exactly this text, because SQLite uses a
// partial index only for a query that repeats the index's condition.
const liveGlidein = "state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING')"

// A row holds the request and, as state and reason, a result derived from the glidein's attempts, which are rows of
// jobs. The state could be computed but is stored so that queries and indexes can select by it; settle keeps it
// consistent with the attempts.
var glideins = table[corral.Glidein]{
	noun:  corral.ObjectGlidein,
	name:  "glideins",
	owner: "owner",
	columns: func(g *corral.Glidein) []column {
		return []column{
			{"id", orNull(&g.ID)},
			{"owner", &g.Owner},
			{"site_id", &g.Site},
			{"cluster_id", &g.Cluster},
			{"hosts", &g.Hosts},
			{"cpus", &g.CPUs},
			{"memory_mib", &g.MemoryMiB},
			{"gpus", &g.GPUs},
			{"speed", &g.Speed},
			{"queue", &g.Queue},
			{"account", &g.Account},
			{"qos", &g.QOS},
			{"features", &g.Constraint},
			{"site_options", asJSON(&g.SiteOptions)},
			{"walltime_ms", ms(&g.Walltime)},
			{"idle_ms", ms(&g.Idle)},
			{"min_stay_ms", ms(&g.MinStay)},
			{"overlap_ms", ms(&g.Overlap)},
			{"queue_timeout_ms", ms(&g.QueueLimit)},
			{"broker", &g.Broker},
			{"ccb", asJSON(&g.CCB)},
			{"slots", &g.Slots},
			{"not_before_at_ms", at(&g.NotBefore)},
			{"follows_id", orNull(&g.Follows)},
			{"follows_after_ms", ms(&g.FollowsAfter)},
			{"follows_wait_ms", ms(&g.FollowsWait)},
			{"resubmit_mode", &g.Resubmit.Mode},
			{"resubmit_limit", &g.Resubmit.Limit},
			{"resubmit_deadline_at_ms", at(&g.Resubmit.Deadline)},
			{"retries", &g.Resubmit.Retries},
			{"labels", asJSON(&g.Labels)},
			{"asked", &g.Asked},
			{"state", &g.State},
			{"reason", &g.Reason},
			{"created_at_ms", at(&g.CreatedAt)},
			{"updated_at_ms", at(&g.UpdatedAt)},
			{"(select name from sites where sites.id = site_id)", &g.SiteName},
			{"(select name from clusters where clusters.id = cluster_id)", &g.ClusterName},
		}
	},
	about: func(g corral.Glidein) []Subject {
		return []Subject{{corral.ObjectGlidein, int64(g.ID)}, {corral.ObjectSite, int64(g.Site)}}
	},
}

// A GlideinFilter selects glideins; each field that is set narrows the selection.
type GlideinFilter struct {
	Filter
	Site    corral.SiteID
	Cluster corral.ClusterID
	Labels  map[string]string // must contain all of these
	Live    bool              // only those whose state is not Terminal
	InBrief bool              // with only the attempts that affect the next state
	WakesBy time.Time         // only glideins that wait for no time, or for a time up to this one; zero: all
}

// wakes is an SQL expression for the time until which a glidein waits only for the clock: its start time, or the end of
// its resubmission. It is 0 if the glidein does not wait for the clock or waits for another glidein. The index of live
// glideins uses exactly this text.
const wakes = "case when state = 'WAITING' and follows_id is null then " +
	"coalesce(min(not_before_at_ms, coalesce(resubmit_deadline_at_ms, not_before_at_ms)), 0) else 0 end"

// conditions returns f as conditions: a new list for each query, because clause appends the limit to the arguments.
func (f GlideinFilter) conditions(t *Tx) conditions {
	var c conditions
	c.owned(t) // the same clause selects the attempts, from another table
	if f.Live {
		c.add(liveGlidein)
	}
	if f.Site != 0 {
		c.add("site_id = ?", f.Site)
	}
	if f.Cluster != 0 {
		c.add("cluster_id = ?", f.Cluster)
	}
	if !f.WakesBy.IsZero() {
		c.add(wakes+" <= ?", at(&f.WakesBy))
	}
	c.labels(f.Labels)
	c.filter(f.Filter)
	return c
}

// NextToWake returns the earliest wake time of a site's live glideins after by, or the zero time if there is none. A
// filter whose WakesBy is by omits the glideins that wake later.
func (t *Tx) NextToWake(site corral.SiteID, by time.Time) (next time.Time, err error) {
	err = t.row("select min("+wakes+") from glideins where site_id = ? and "+liveGlidein+" and "+wakes+" > ?",
		[]any{site, at(&by)}, at(&next))
	return next, wrap.Errorf(err, "looking for the next glidein to wake at site %d", site)
}

// CreateGlidein stores g if corral.Site.NewGlidein allows it. It settles g first, so that NEW appears only in the
// glidein's history and never in its row.
func (t *Tx) CreateGlidein(g corral.Glidein) (corral.Glidein, error) {
	site, err := t.Site(g.Site)
	if err != nil {
		return corral.Glidein{}, err
	}
	cluster, err := t.Cluster(g.Cluster)
	if err != nil {
		return corral.Glidein{}, err
	}
	if g, err = site.NewGlidein(cluster, g, t.now); err != nil {
		return corral.Glidein{}, err
	}
	g.ID = 0
	settled, entries, err := t.settled(g, site, corral.Lack{})
	if err != nil {
		return corral.Glidein{}, err
	}
	return glideins.create(t, settled, string(g.State), entries...)
}

// Glidein returns the glidein with this id and its attempts, even if the glidein is DELETED.
func (t *Tx) Glidein(id corral.GlideinID) (corral.Glidein, error) {
	g, err := glideins.one(t, id, "id = ?", id)
	if err != nil {
		return corral.Glidein{}, err
	}
	g.Attempts, err = t.Jobs(JobFilter{Glidein: id})
	return g, err
}

// Glideins lists glideins, each with its attempts.
func (t *Tx) Glideins(f GlideinFilter) ([]corral.Glidein, error) {
	list, err := glideins.list(t, f.conditions(t))
	switch {
	case err != nil:
		return nil, err
	case f.InBrief:
		return list, t.addInBrief(list, f.conditions(t))
	}
	return list, t.addAttempts(list, f.conditions(t))
}

// Held returns the resources that the glideins at a site hold or will hold, by the plan that requested them; plan 0
// collects glideins without a plan. Glideins that were asked to drain or cancel are not counted.
func (t *Tx) Held(site corral.SiteID) (map[corral.PlanID]corral.Resources, error) {
	held := map[corral.PlanID]corral.Resources{}
	err := t.rows(`
		select
			coalesce(`+labelledPlan+`, '') as plan,
			sum(hosts * cpus), sum(hosts * memory_mib), sum(hosts * gpus)
		from glideins
		where site_id = ? and asked = '' and `+liveGlidein+`
		group by plan`, []any{site},
		func(rows *sql.Rows) error {
			var label string
			var r corral.Resources
			err := rows.Scan(&label, &r.CPUs, &r.MemoryMiB, &r.GPUs)
			held[planOf(label)] = held[planOf(label)].Plus(r)
			return err
		})
	return held, wrap.Errorf(err, "adding up the resources held at site %d", site)
}

// addAttempts reads the attempts of list, which c selects, in one query.
func (t *Tx) addAttempts(list []corral.Glidein, c conditions) error {
	where := c.clause()
	var of conditions
	of.add("glidein_id in (select id from glideins"+where+")", c.args...)
	attempts, err := jobs.list(t, of)
	if err != nil {
		return err
	}
	give(list, attempts)
	return nil
}

// give distributes attempts to their glideins in list, in the given order.
func give(list []corral.Glidein, attempts []corral.Job) {
	place := make(map[corral.GlideinID]int, len(list))
	for i, g := range list {
		place[g.ID] = i
	}
	for _, a := range attempts {
		list[place[a.Glidein]].Add(a)
	}
}

// AskGlidein records a request to drain or cancel a glidein and settles it: a glidein without a live attempt is
// DELETED at once. A request that is not stronger than the earlier one changes nothing: see corral.Glidein.Ask. The
// engine passes the request on to the attempts.
func (t *Tx) AskGlidein(id corral.GlideinID, ask corral.Ask, reason string) (corral.Glidein, error) {
	_, changed, err := glideins.change(t, id, func(g corral.Glidein) (corral.Glidein, []corral.Entry, error) {
		return g.Ask(ask, reason, t.now)
	})
	if err == nil && changed {
		_, err = t.SettleGlidein(id, corral.Lack{})
	}
	if err != nil {
		return corral.Glidein{}, err
	}
	return t.Glidein(id)
}

// RetimeGlidein sets the start time of a glidein's first attempt and settles it: see corral.Glidein.Retime.
func (t *Tx) RetimeGlidein(id corral.GlideinID, at time.Time, reason string) error {
	_, changed, err := glideins.change(t, id, func(g corral.Glidein) (corral.Glidein, []corral.Entry, error) {
		return g.Retime(at, reason, t.now)
	})
	if err == nil && changed {
		_, err = t.SettleGlidein(id, corral.Lack{})
	}
	return err
}

// SettleGlidein updates a glidein's state and reason to match everything recorded at Now: see corral.Glidein.Settle.
// lack is anything that the glidein lacks for a reason other than its site; any other change settles the glidein
// without this lack until the next call. SettleGlidein returns the glidein in brief.
func (t *Tx) SettleGlidein(id corral.GlideinID, lack corral.Lack) (corral.Glidein, error) {
	g, err := t.GlideinInBrief(id)
	if err != nil {
		return corral.Glidein{}, err
	}
	site, err := t.Site(g.Site)
	if err != nil {
		return corral.Glidein{}, err
	}
	return t.settle(g, site, cmp.Or(lack, site.Lack()))
}

// settleSite settles a site's live glideins, because the site's state decides whether they may submit.
func (t *Tx) settleSite(s corral.Site) error {
	list, err := t.Glideins(GlideinFilter{Site: s.ID, Live: true, InBrief: true})
	if err != nil {
		return err
	}
	for _, g := range list {
		if _, err := t.settle(g, s, s.Lack()); err != nil {
			return err
		}
	}
	return nil
}

// settle writes a glidein's state, if it has changed.
func (t *Tx) settle(g corral.Glidein, site corral.Site, lack corral.Lack) (corral.Glidein, error) {
	g, entries, err := t.settled(g, site, lack)
	if err != nil || len(entries) == 0 {
		return g, err
	}
	return g, glideins.save(t, g, entries...)
}

// settled is the only function that determines a glidein's state. The site's circuit breaker matters only where it
// can stop another attempt: at a READY site, for a glidein without a live attempt.
func (t *Tx) settled(g corral.Glidein, site corral.Site, lack corral.Lack) (corral.Glidein, []corral.Entry, error) {
	var held corral.Hold
	if site.State == corral.SiteReady && len(g.Live()) == 0 {
		told, err := t.Told(g.Site)
		if err != nil {
			return corral.Glidein{}, nil, err
		}
		held = corral.NewHold(told)
	}
	g, entries := g.Settle(site.State, held, lack, t.now)
	return g, entries, nil
}
