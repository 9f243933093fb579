package admit_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan"
)

// A pair draws the histories of two owners. New objects refer to objects of either owner, with ids drawn at random.
type pair struct {
	*rapid.T
	db   *store.DB
	made int
	did  map[string]int // :: change → number of times it was made, which equals the latest id of its new objects

	owner string             // owner for whom the change is tried
	ids   map[string][]int64 // :: kind and owner → ids of their objects
}

// pick draws the id of an object of some kind: the owner's, the other owner's, or one that does not exist.
func (p *pair) pick(kind string) int64 {
	of := p.owner
	if rapid.IntRange(0, 5).Draw(p.T, "another's") == 0 {
		of = map[string]string{"ann": "bob", "bob": "ann"}[of]
	}
	if ids := p.ids[kind+of]; len(ids) > 0 {
		return ids[len(ids)-1-rapid.IntRange(0, min(2, len(ids)-1)).Draw(p.T, kind)]
	}
	return int64(p.did[kind]) + 1
}

// opener draws the caller for whom a transaction is opened: an owner, background work, or an administrator.
func (p *pair) opener(owner string) store.Owner {
	if rapid.IntRange(0, 3).Draw(p.T, "an administrator asks") == 0 {
		return p.db.Caller(access.Caller{Name: "root", Role: corral.RoleAdministrator})
	}
	return p.db.Owner(owner)
}

// labels draws labels with which corrald finds its requests.
func (p *pair) labels() map[string]string {
	label := rapid.SampledFrom([]string{"", "", "", "plan", "cluster", "ensemble"}).Draw(p.T, "label")
	if label == "" {
		return nil
	}
	id := fmt.Sprint(p.pick(label))
	if label == "cluster" {
		label = store.ScaleLabel
	}
	return map[string]string{label: id}
}

// site moves a site to another state. It may then be NEW, READY, or DELETED, which frees its name.
func (p *pair) site(tx *store.Tx) error {
	move := rapid.SampledFrom([]corral.SiteMove{corral.SiteStage, corral.SiteStaged, corral.SiteStage, corral.SiteStaged, corral.SiteForget}).Draw(p.T, "move")
	return store.Done(tx.MoveSite(corral.SiteID(p.pick("site")), move, ""))
}

// at returns the site and the cluster with drawn ids, if the transaction sees them.
func (p *pair) at(tx *store.Tx) (h home, err error) {
	if h.site, err = tx.Site(corral.SiteID(p.pick("site"))); err == nil {
		h.cluster, err = tx.Cluster(corral.ClusterID(p.pick("cluster")))
	}
	return h, err
}

// glidein requests a glidein at a home drawn at random.
func (p *pair) glidein(tx *store.Tx, owner string, labels map[string]string) (corral.Glidein, error) {
	h, err := p.at(tx)
	if err != nil {
		return corral.Glidein{}, err
	}
	ask := newPilot(owner, h)
	ask.Request.Labels, ask.Labels = labels, []string{"plan", "scale", "ensemble"}
	ask.Follows.Glidein = corral.GlideinID(max(0, p.pick("glidein")*int64(rapid.IntRange(0, 1).Draw(p.T, "follows"))))
	return admit.Glidein(tx, ask)
}

// changes lists the changes, each on behalf of an owner. Most are refused.
var changes = map[string]func(*pair, *store.Tx, string) error{
	"site": func(p *pair, tx *store.Tx, owner string) error {
		s := newSite(owner, "hpc")
		s.Root = fmt.Sprint("/srv/", p.made)
		return store.Done(admit.Site(tx, s))
	},
	"move": func(p *pair, tx *store.Tx, _ string) error { return p.site(tx) },
	"cluster": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(admit.Cluster(tx, newCluster(owner, fmt.Sprint("c", rapid.IntRange(0, 30).Draw(p.T, "name")))))
	},
	"glidein": func(p *pair, tx *store.Tx, owner string) error { return store.Done(p.glidein(tx, owner, p.labels())) },
	"adopted": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(admit.Adopt(tx, corral.Glidein{Owner: owner, Site: corral.SiteID(p.pick("site")),
			Cluster: corral.ClusterID(p.pick("cluster")),
			Shape:   corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}}))
	},
	"attempt": func(p *pair, tx *store.Tx, _ string) error {
		return store.Done(tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: corral.SiteID(p.pick("site")),
			Glidein: corral.GlideinID(p.pick("glidein")), Tag: fmt.Sprint("tag", p.made)}))
	},
	"run": func(p *pair, tx *store.Tx, owner string) error {
		r := newRun(owner, home{}, p.made)
		r.Cluster, r.Labels = corral.ClusterID(p.pick("cluster")), p.labels()
		return store.Done(admit.Run(tx, r))
	},
	"member": func(p *pair, tx *store.Tx, owner string) error {
		r := newRun(owner, home{}, p.made)
		r.Cluster, r.Labels = corral.ClusterID(p.pick("cluster")), map[string]string{"ensemble": fmt.Sprint(p.pick("ensemble"))}
		return store.Done(admit.RunOfEnsemble(tx, r))
	},
	"usage": func(p *pair, tx *store.Tx, _ string) error {
		key := store.UsageKey{Attempt: corral.JobID(p.pick("attempt")), Hour: 1}
		return tx.SetUsage(corral.RunID(p.pick("run")), map[store.UsageKey]store.Taken{key: {Used: 1}}, false)
	},
	"plan": func(p *pair, tx *store.Tx, owner string) error {
		row := newPlan(owner, home{})
		row.Cluster, row.Sites["home"] = corral.ClusterID(p.pick("cluster")), corral.SiteID(p.pick("site"))
		return store.Done(admit.Plan(tx, row))
	},
	"provision": func(p *pair, tx *store.Tx, _ string) error {
		row, err := tx.PlanRow(corral.PlanID(p.pick("plan")))
		if err != nil {
			return err
		}
		return store.Done(admit.Provision(tx, row))
	},
	"reserve": func(p *pair, tx *store.Tx, owner string) error { // for a pilot that a plan requests
		id := corral.PlanID(p.pick("plan"))
		_, err := tx.MovePlan(id, corral.PlanProvision, "")
		if err != nil && corral.KindOf(err) != corral.Conflict {
			return err
		}
		g, err := p.glidein(tx, owner, map[string]string{"plan": fmt.Sprint(id)})
		if err != nil {
			return err
		}
		return admit.Reserve(tx, id, []plan.Pilot{{Site: g.SiteName,
			Shape: corral.Shape{Hosts: 1, CPUs: 1}}}, []corral.Glidein{g})
	},
	"scale": func(p *pair, tx *store.Tx, owner string) error {
		h, err := p.at(tx)
		if err != nil {
			return err
		}
		n := newScale(owner, h)
		other, err := tx.Site(corral.SiteID(p.pick("site")))
		n.Sites = append(n.Sites, other)
		return cmp.Or(err, store.Done(admit.Scale(tx, n)))
	},
	"ensemble": func(p *pair, tx *store.Tx, owner string) error {
		e := newEnsemble(owner, home{}, p.made)
		e.Cluster, e.Pilots.SiteID = corral.ClusterID(p.pick("cluster")), corral.SiteID(p.pick("site"))
		return store.Done(admit.Ensemble(tx, e))
	},
}

// makes :: change → noun that it creates, if the two names differ.
var makes = map[string]string{"reserve": "glidein", "adopted": "glidein", "member": "run"}

// No sequence of actions by two owners and their background work makes a row of one owner refer to an object of the
// other. Some of the changes of each kind must succeed.
func TestNoRowPointsAtAnothersObject(t *testing.T) {
	t.Parallel()
	db := storetest.OpenTest(t)
	path := storetest.Path(db)
	p := &pair{db: db, did: map[string]int{}, ids: map[string][]int64{}}
	names, cases := slices.Sorted(maps.Keys(changes)), 0
	rapid.Check(t, func(rt *rapid.T) {
		p.T = rt
		for range rapid.IntRange(20, 200).Draw(rt, "changes") {
			name, owner := rapid.SampledFrom(names).Draw(rt, "change"), rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "owner")
			p.made++
			p.owner = owner
			// A refused change leaves the database unchanged.
			err := p.opener(owner).Write(t.Context(), store.Actor, func(tx *store.Tx) error { return changes[name](p, tx, owner) })
			if err == nil {
				p.did[name]++
				p.ids[name+owner] = append(p.ids[name+owner], int64(p.did[name]))
				if of := makes[name]; of != "" {
					p.did[of]++
					p.ids[of+owner] = append(p.ids[of+owner], int64(p.did[of]))
				}
			}
		}
		if cases++; cases%10 == 0 { // a check takes as long as hundreds of changes
			p.check(t, path)
		}
	})
	p.check(t, path)
	for _, name := range names {
		if p.did[name] == 0 {
			t.Errorf("%s was never done: the property says nothing of it", name)
		}
	}
	t.Logf("of %d changes were done: %v", p.made, p.did)
}

// check fails the test if a row of one owner refers to an object of the other.
func (p *pair) check(t *testing.T, path string) {
	t.Helper()
	found, err := storetest.Strangers(t.Context(), path)
	if err != nil || len(found) > 0 {
		t.Fatalf("%v, %v", found, err)
	}
}
