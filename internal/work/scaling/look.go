package scaling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// A look holds the findings so far of one check of a cluster.
type look struct {
	scale   corral.Scale
	cluster corral.Cluster
	waiting []matching.Class
	workers []corral.Worker
	refused map[string]string // :: site → why it unexpectedly accepted no worker

	measured bool // the workers' resources have been recorded
}

// read reads the scale and its cluster; it returns a NotFound error if there is no scale.
func (l *look) read(tx *store.Tx, cluster corral.ClusterID) (err error) {
	if l.scale, err = tx.Scale(cluster); err == nil {
		l.cluster, err = tx.Cluster(cluster)
	}
	return err
}

// refuse excludes a site from this check.
func (l *look) refuse(site string, why error) {
	if l.refused == nil {
		l.refused = map[string]string{}
	}
	l.refused[site] = fmt.Sprintf("refuses a worker: %v", why)
}

// decide creates a view from a look and the current store, and decides.
func (k *scaler) decide(tx *store.Tx, l *look) (d Decision, err error) {
	if err := l.read(tx, k.cluster); err != nil {
		return d, err
	}
	if l.cluster.State != corral.ClusterReady {
		return Decision{Report: "nothing is asked for: the cluster is " + string(l.cluster.State)}, nil
	}
	if refusal, err := tx.Refusal(l.scale.Owner); refusal != "" || err != nil {
		return Decision{Report: "nothing is asked for: " + refusal}, err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: k.cluster, Live: true, InBrief: true})
	if err != nil {
		return d, err
	}
	if err := k.countFailures(tx, glideins); err != nil {
		return d, err
	}
	if !l.measured {
		k.measure(glideins, l.workers)
		l.measured = true
	}
	now := time.Now()
	v := k.view(now, l, glideins)
	if count(l.waiting) == 0 {
		k.waiting = now
	}
	v.Waited = now.Sub(k.waiting)
	if count(v.Waiting) == 0 && v.Held >= l.scale.Min { // no worker is needed, so the sites need not be read
		return Decide(now, l.scale, v), nil
	}
	for _, id := range l.scale.SiteIDs {
		s, err := k.site(tx, now, l, id)
		if err != nil {
			return d, err
		}
		v.Sites = append(v.Sites, s)
	}
	return Decide(now, l.scale, v), nil
}

// view returns the present and future workers.
func (k *scaler) view(now time.Time, l *look, glideins []corral.Glidein) View {
	walltime := time.Duration(l.scale.Walltime)
	v := View{Waiting: l.waiting, Longest: attempt.Longest(walltime-jobfiles.Reserve(walltime)) - time.Second}
	static := map[corral.GlideinID]bool{}
	for _, g := range glideins {
		static[g.ID] = g.Slots == corral.SlotsStatic
	}
	present := map[corral.JobID]int{} // :: attempt → registered cpus
	for _, w := range l.workers {
		if w.Connected && !w.Draining {
			present[w.Attempt] += w.CPUs
			longest := w.Speed.Within(w.EndsAt.Sub(now) - execution.StartMargin)
			v.Room = append(v.Room, rooms(w.Free(), longest, static[w.Glidein])...)
			v.Whole = append(v.Whole, rooms(w.Resources(), longest, static[w.Glidein])...)
		}
	}
	for _, g := range glideins {
		v.Held += g.Hosts * g.CPUs
		left, ok := attempt.ToCome(&g, present, now)
		if !ok || g.NotBefore.After(now.Add(time.Minute)) {
			continue
		}
		c := Coming{Room: Room{k.host(g), g.Speed.Within(left)}}
		if isOwn(g) && !begun(g) {
			c.Own, c.SpareAt = g.ID, k.spare[g.ID]
		}
		for range toCome(g, present) {
			v.Coming = append(v.Coming, c)
		}
	}
	return v
}

// isOwn reports whether a glidein was requested by its cluster's scale.
func isOwn(g corral.Glidein) bool { return g.Labels[store.ScaleLabel] == label(g.Cluster) }

// rooms returns the rooms of a worker. A worker with static slots has one room for each free cpu, with a share of the
// other resources, because no job can use parts of two slots.
func rooms(free corral.Resources, left time.Duration, static bool) []Room {
	if !static || free.CPUs < 2 {
		return []Room{{free, left}}
	}
	all := make([]Room, free.CPUs)
	for i := range all {
		all[i] = Room{ofEachCPU(free), left}
	}
	return all
}

// ofEachCPU returns the share of the free resources that belongs to one cpu.
func ofEachCPU(free corral.Resources) corral.Resources {
	c := components(free)
	for i := range c {
		if c[i] != corral.Unlimited {
			c[i] /= free.CPUs
		}
	}
	return resources(c)
}

// host returns the expected resources of a future worker, based on earlier workers.
func (k *scaler) host(g corral.Glidein) corral.Resources {
	host := g.Host()
	host.MemoryMiB = cmp.Or(host.MemoryMiB, corral.Unlimited) // 0: its site decides
	if isOwn(g) {
		host = least(host, k.most(g.Site))
	}
	return host
}

// anything represents unknown resources.
var anything = resources([4]int{corral.Unlimited, corral.Unlimited, corral.Unlimited, corral.Unlimited})

// known returns the recorded resources of a site, or anything if no resources are recorded.
func known(of map[corral.SiteID]corral.Resources, site corral.SiteID) corral.Resources {
	if r, ok := of[site]; ok {
		return r
	}
	return anything
}

// most returns the maximum resources of the scale's workers at a site, Unlimited where they are unknown.
func (k *scaler) most(site corral.SiteID) corral.Resources {
	return least(known(k.had, site), known(k.less, site))
}

// measure records, once per check, the resources of the scale's workers at each site: their disk, which cannot be
// requested, and their memory and GPUs if these are below the request. Values from earlier workers are kept until other
// workers arrive; otherwise the same worker would be requested over and over. A value below the request counts for this
// check; it is kept only if the previous check also found such a value, because a single low value may be a hiccup.
func (k *scaler) measure(glideins []corral.Glidein, workers []corral.Worker) {
	own, disk := map[corral.GlideinID]corral.Glidein{}, map[corral.SiteID]int{}
	for _, g := range glideins {
		if isOwn(g) {
			own[g.ID] = g
		}
	}
	before := k.less
	k.less = map[corral.SiteID]corral.Resources{}
	for _, w := range workers {
		g, ok := own[w.Glidein]
		if !ok || !w.Connected {
			continue
		}
		most, less := known(k.had, g.Site), known(k.less, g.Site)
		given(&most.MemoryMiB, &less.MemoryMiB, g.MemoryMiB, w.MemoryMiB)
		given(&most.GPUs, &less.GPUs, g.GPUs, w.GPUs)
		if w.DiskFree != corral.Unlimited {
			disk[g.Site] = max(disk[g.Site], w.DiskMiB)
			most.DiskMiB = disk[g.Site]
		}
		k.had[g.Site], k.less[g.Site] = most, less
	}
	for site, less := range k.less {
		k.had[site] = least(k.had[site], less.Most(known(before, site)))
	}
}

// given records the amount of a resource that a worker received, if that is less than requested. It discards the known
// maximum of the site if the worker received the full request although the request exceeds that maximum.
func given(most, less *int, asked, got int) {
	if got < asked {
		*less = min(*less, got)
	} else if asked > min(*most, *less) { // the site provides more after all
		*most, *less = corral.Unlimited, corral.Unlimited
	}
}

// toCome returns the number of a glidein's workers that are not present yet.
func toCome(g corral.Glidein, present map[corral.JobID]int) int {
	hosts := g.Hosts
	for _, a := range g.Live() {
		hosts -= present[a.ID] / max(1, g.CPUs)
	}
	return max(0, hosts)
}

// begun reports whether an attempt of a glidein is running.
func begun(g corral.Glidein) bool {
	for _, a := range g.Live() {
		if a.State == corral.JobRunning {
			return true
		}
	}
	return false
}

// countFailures counts the failures of those of the scale's pilots that were live at the last check and have ended
// since.
func (k *scaler) countFailures(tx *store.Tx, live []corral.Glidein) error {
	before := maps.Clone(k.own)
	clear(k.own)
	for _, g := range live {
		delete(before, g.ID)
		if isOwn(g) {
			k.own[g.ID] = g.Site
		}
	}
	var ended []corral.Glidein
	for id := range before {
		g, err := tx.Glidein(id)
		if err != nil {
			return err
		}
		ended = append(ended, g)
	}
	slices.SortFunc(ended, func(a, b corral.Glidein) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	for _, g := range ended {
		k.failed[g.Site] = k.failed[g.Site].and(g)
	}
	return nil
}

// and returns the failures including the end of a pilot. A failed pilot that was requested before the last failure does
// not count, because one hiccup of a site ends many pilots at once. Neither does a pilot whose end was requested.
func (f failures) and(g corral.Glidein) failures {
	switch {
	case g.Asked != corral.AskNothing, g.State == corral.GlideinFailed && g.CreatedAt.Before(f.last):
		return f
	case g.State == corral.GlideinFailed:
		return failures{f.n + 1, g.UpdatedAt}
	}
	return failures{}
}

// Worker returns the request for a worker at a site, independent of any waiting tasks.
func Worker(s corral.Scale, site string) api.NewGlidein {
	return worker(s, Ask{Site: site, Keep: true})
}

// worker returns the request for a worker.
func worker(s corral.Scale, a Ask) api.NewGlidein {
	in := api.NewGlidein{Site: a.Site, Cluster: s.ClusterName,
		Shape:  corral.Shape{Hosts: 1, CPUs: s.CPUs, GPUs: a.Needs.GPUs, Walltime: s.Walltime},
		Labels: labels(s)}
	if !a.Keep {
		in.Idle = s.Idle
	}
	return in
}

// create creates the glidein of a worker. why is the decision's report.
func (k *scaler) create(tx *store.Tx, l look, a Ask, why string) error {
	site, err := tx.Site(l.scale.SiteIDs[slices.Index(l.scale.Sites, a.Site)])
	if err != nil {
		return err
	}
	p := k.pilot(&l, site, worker(l.scale, a))
	g, err := admit.Place(p, tx.Now())
	if err != nil {
		return err
	}
	// The jobs may need more memory than the share of the worker's cpus, and a machine may have less left.
	if g.MemoryMiB < a.Needs.MemoryMiB || site.System().Queueless && a.Needs.MemoryMiB > 0 {
		p.Request.MemoryMiB, g.MemoryMiB = a.Needs.MemoryMiB, a.Needs.MemoryMiB
	}
	paid, err := available(tx, site) // exactly, with the memory and the GPUs of this worker
	if err != nil {
		return err
	}
	if paid != nil {
		if why := paid.refusal(g.Shape); why != "" {
			return corral.Errorf(corral.Conflict, "it %s", why)
		}
	}
	tx.Because(fmt.Sprintf("the scale of cluster %s: %s", l.cluster.Name, why))
	_, err = admit.Glidein(tx, p)
	return err
}

// pilot returns the request for a worker at a site, as input for admission.
func (k *scaler) pilot(l *look, site corral.Site, in api.NewGlidein) admit.GlideinRequest {
	return admit.GlideinRequest{Request: in, Owner: l.scale.Owner, Site: site, Cluster: l.cluster, Machine: k.machine,
		Labels: []string{store.ScaleLabel}}
}
