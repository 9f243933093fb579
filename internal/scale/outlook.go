package scale

import (
	"fmt"
	"maps"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/matching"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/attempt"
	"github.com/corral-pilot/corral/internal/request"
	"github.com/corral-pilot/corral/internal/store"
)

// An outlook is what a decision needs that is not in the store.
type outlook struct {
	scale   corral.Scale
	cluster corral.Cluster // read with the glideins
	waiting []matching.Class
	workers []corral.Worker
}

// decide makes a view of an outlook and of the store as it is now, and decides.
func (k *keeper) decide(tx *store.Tx, o *outlook) (d Decision, err error) {
	if o.cluster, err = tx.Cluster(o.scale.Cluster); err != nil {
		return d, err
	}
	if o.cluster.State != corral.ClusterReady {
		return Decision{Report: "nothing is asked for: the cluster is " + string(o.cluster.State)}, nil
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: o.scale.Cluster, Live: true, InBrief: true})
	if err != nil {
		return d, err
	}
	if err := k.countFailures(tx, glideins); err != nil {
		return d, err
	}
	now := time.Now()
	v := o.view(now, glideins, k.spare[o.scale.Cluster])
	for _, name := range o.scale.Sites {
		s, err := k.site(tx, now, name)
		if err != nil {
			return d, err
		}
		v.Sites = append(v.Sites, s)
	}
	return Decide(now, o.scale, v), nil
}

// view says what there is and what is to come.
func (o *outlook) view(now time.Time, glideins []corral.Glidein, spare spares) View {
	walltime := time.Duration(o.scale.Walltime)
	v := View{Waiting: o.waiting, Longest: attempt.Longest(walltime-order.Reserve(walltime)) - time.Second}
	present := map[corral.JobID]int{} // :: attempt → cpus registered
	for _, w := range o.workers {
		if w.Connected && !w.Draining {
			present[w.Attempt] += w.CPUs
			v.Room = append(v.Room, Room{free(w), w.EndsAt.Sub(now) - execution.StartMargin})
		}
	}
	label := labels(o.scale)[Label]
	for _, g := range glideins {
		v.Held += g.Hosts * g.CPUs
		left, ok := attempt.ToCome(g, present, now)
		if !ok || g.NotBefore.After(now.Add(time.Minute)) {
			continue
		}
		c := Coming{Room: Room{g.Host(), left}}
		if g.Labels[Label] == label && !begun(g) {
			c.Own, c.SpareAt = g.ID, spare[g.ID]
		}
		for range toCome(g, present) {
			v.Coming = append(v.Coming, c)
		}
	}
	return v
}

// free estimates what is free of a worker: it tells its free cpus, and of what else it has the same part is taken to be
// free.
func free(w corral.Worker) corral.Resources {
	r := w.Resources()
	part := func(n int) int { return n * w.CPUsFree / max(1, w.CPUs) }
	return corral.Resources{
		CPUs: w.CPUsFree, MemoryMiB: part(r.MemoryMiB), GPUs: part(r.GPUs), DiskMiB: part(r.DiskMiB),
	}
}

// toCome is how many workers of a glidein are not there.
func toCome(g corral.Glidein, present map[corral.JobID]int) int {
	hosts := g.Hosts
	for _, a := range g.Live() {
		hosts -= present[a.ID] / max(1, g.CPUs)
	}
	return max(0, hosts)
}

// begun reports whether an attempt of a glidein runs.
func begun(g corral.Glidein) bool {
	for _, a := range g.Live() {
		if a.State == corral.JobRunning {
			return true
		}
	}
	return false
}

// mostPilots bounds what is asked of one site at one look.
const mostPilots = 1000

// site says what a site takes now.
func (k *keeper) site(tx *store.Tx, now time.Time, name string) (Site, error) {
	s, err := tx.SiteNamed(name)
	if corral.KindOf(err) == corral.NotFound {
		return Site{Name: name, Closed: "is gone"}, nil
	}
	if err != nil {
		return Site{}, err
	}
	f := k.failed[s.ID]
	switch {
	case s.State != corral.SiteReady:
		return Site{Name: name, Closed: "is " + string(s.State)}, nil
	case now.Before(RetryAt(f.n, f.last)):
		return Site{Name: name, Closed: fmt.Sprintf("is asked again at %s: %d pilots in a row failed there",
			RetryAt(f.n, f.last).UTC().Format(time.TimeOnly), f.n)}, nil
	}
	load, err := tx.Load(s.ID)
	if err != nil {
		return Site{}, err
	}
	open := Site{Name: name}
	for ; open.Pilots < mostPilots; open.Pilots++ {
		if full := s.Full(load); full != "" {
			if open.Pilots == 0 {
				open.Closed = "takes none: " + full
			}
			break
		}
		load.Queued++
	}
	return open, nil
}

// countFailures takes in how pilots of scales ended that were alive at the last look.
func (k *keeper) countFailures(tx *store.Tx, live []corral.Glidein) error {
	seen := map[corral.GlideinID]bool{}
	for _, g := range live {
		if seen[g.ID] = true; g.Labels[Label] != "" {
			k.own[g.ID] = g.Site
		}
	}
	for id, site := range maps.Clone(k.own) {
		if seen[id] {
			continue
		}
		g, err := tx.Glidein(id)
		if err != nil {
			return err
		}
		if !g.State.Terminal() {
			continue // of another cluster
		}
		delete(k.own, id)
		k.failed[site] = k.failed[site].and(g)
	}
	return nil
}

// and takes in how a pilot ended. One that was asked for before the last failure says nothing more by failing: a hiccup
// of a site ends many at once. One that was asked to end says nothing at all.
func (f failures) and(g corral.Glidein) failures {
	switch {
	case g.Asked != corral.AskNothing, g.State == corral.GlideinFailed && g.CreatedAt.Before(f.last):
		return f
	case g.State == corral.GlideinFailed:
		return failures{f.n + 1, g.UpdatedAt}
	}
	return failures{}
}

// ask creates the glidein of a worker.
func (k *keeper) ask(tx *store.Tx, o outlook, a Ask) error {
	s := o.scale
	in := api.NewGlidein{Site: a.Site, Cluster: s.ClusterName, Hosts: 1, CPUs: s.CPUs, GPUs: a.Needs.GPUs,
		Walltime: s.Walltime, Labels: labels(s)}
	if !a.Keep {
		in.Idle = s.Idle
	}
	site, err := tx.SiteNamed(a.Site)
	if err != nil {
		return err
	}
	g, err := k.placed(in, site, o.cluster)
	if err == nil && g.MemoryMiB < a.Needs.MemoryMiB { // than the share of its cpus
		in.MemoryMiB = a.Needs.MemoryMiB
		g, err = k.placed(in, site, o.cluster)
	}
	if err != nil {
		return err
	}
	g.Owner = s.Owner
	_, err = tx.CreateGlidein(g)
	return err
}

func (k *keeper) placed(in api.NewGlidein, at corral.Site, to corral.Cluster) (corral.Glidein, error) {
	g, err := request.Glidein(in, time.Now())
	if err == nil {
		err = request.Place(&g, at, to, k.machine)
	}
	return g, err
}
