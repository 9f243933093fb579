package store_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A pair is two owners with random histories. New objects refer to random ids, whoever owns them.
type pair struct {
	*rapid.T
	db   *store.DB
	made int
	did  map[string]int // :: change → how often it was made, which is the latest id of its new objects

	owner string             // the owner on whose behalf the change is tried
	ids   map[string][]int64 // :: kind and owner → ids of their objects
}

// pick draws an id of a kind of object: the owner's, the other owner's, or one that does not exist.
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

// opener draws on whose behalf a transaction is opened: an owner, background work, or an administrator.
func (p *pair) opener(owner string) store.Owner {
	if rapid.IntRange(0, 3).Draw(p.T, "an administrator asks") == 0 {
		return p.db.Caller(access.Caller{Name: "root", Role: corral.RoleAdministrator})
	}
	return p.db.Owner(owner)
}

// labels draws labels by which corrald finds its requests.
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

// site moves a site to another state, so that it may be NEW, READY, or DELETED with its name free for another.
func (p *pair) site(tx *store.Tx) error {
	move := rapid.SampledFrom([]corral.SiteMove{corral.SiteStage, corral.SiteStaged, corral.SiteStage, corral.SiteStaged, corral.SiteForget}).Draw(p.T, "move")
	return store.Done(tx.MoveSite(corral.SiteID(p.pick("site")), move, ""))
}

// changes are the possible changes, each on behalf of an owner. Most are refused.
var changes = map[string]func(*pair, *store.Tx, string) error{
	"site": func(p *pair, tx *store.Tx, owner string) error {
		s := newSite("hpc")
		s.Owner, s.Root = owner, fmt.Sprint("/srv/", p.made)
		return store.Done(tx.CreateSite(s))
	},
	"move": func(p *pair, tx *store.Tx, _ string) error { return p.site(tx) },
	"cluster": func(p *pair, tx *store.Tx, owner string) error {
		name := rapid.SampledFrom([]string{"default", "other"}).Draw(p.T, "name")
		return store.Done(tx.CreateCluster(corral.Cluster{Name: name, Owner: owner, Kind: corral.Embedded}))
	},
	"glidein": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(tx.CreateGlidein(corral.Glidein{Owner: owner, Site: corral.SiteID(p.pick("site")),
			Cluster: corral.ClusterID(p.pick("cluster")), Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour),
			QueueLimit: corral.Seconds(time.Hour), Labels: p.labels(),
			Follows: corral.GlideinID(max(0, p.pick("glidein")*int64(rapid.IntRange(0, 1).Draw(p.T, "follows"))))}))
	},
	"attempt": func(p *pair, tx *store.Tx, _ string) error {
		return store.Done(tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: corral.SiteID(p.pick("site")),
			Glidein: corral.GlideinID(p.pick("glidein")), Tag: fmt.Sprint("tag", p.made)}))
	},
	"run": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(tx.CreateRun(corral.Run{Owner: owner, Cluster: corral.ClusterID(p.pick("cluster")), Workflow: "w",
			Dir: fmt.Sprint("/runs/", p.made), Labels: p.labels()}))
	},
	"usage": func(p *pair, tx *store.Tx, _ string) error {
		key := store.UsageKey{Attempt: corral.JobID(p.pick("attempt")), Hour: 1}
		return tx.SetUsage(corral.RunID(p.pick("run")), map[store.UsageKey]store.Taken{key: {Used: 1}}, false)
	},
	"plan": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(tx.CreatePlan(corral.Plan{Owner: owner, Cluster: corral.ClusterID(p.pick("cluster")), Workflow: "w",
			Sites: map[string]corral.SiteID{"hpc": corral.SiteID(p.pick("site"))}, State: corral.PlanReady,
			Document: json.RawMessage(`{"pilots": [{}]}`), Digest: "sha256:" + strings.Repeat("0", 64)}))
	},
	"provision": func(p *pair, tx *store.Tx, _ string) error {
		return store.Done(tx.MovePlan(corral.PlanID(p.pick("plan")), corral.PlanProvision, ""))
	},
	"reserve": func(p *pair, tx *store.Tx, owner string) error { // for a pilot that a plan requests
		id, site := corral.PlanID(p.pick("plan")), corral.SiteID(p.pick("site"))
		_, err := tx.MovePlan(id, corral.PlanProvision, "")
		if err != nil && corral.KindOf(err) != corral.Conflict {
			return err
		}
		g, err := tx.CreateGlidein(corral.Glidein{Owner: owner, Site: site, Cluster: corral.ClusterID(p.pick("cluster")), Hosts: 1,
			CPUs: 1, Walltime: corral.Seconds(time.Hour), QueueLimit: corral.Seconds(time.Hour), Labels: map[string]string{"plan": fmt.Sprint(id)}})
		if err != nil {
			return err
		}
		return tx.Reserve(id, site, map[corral.GlideinID]cost.Money{g.ID: 1})
	},
	"scale": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(tx.CreateScale(corral.Scale{Owner: owner, Cluster: corral.ClusterID(p.pick("cluster")), Max: 1, CPUs: 1,
			SiteIDs:  []corral.SiteID{corral.SiteID(p.pick("site")), corral.SiteID(p.pick("site"))},
			Walltime: corral.Seconds(time.Hour), Idle: corral.Seconds(time.Minute)}))
	},
	"ensemble": func(p *pair, tx *store.Tx, owner string) error {
		return store.Done(tx.CreateEnsemble(record.Ensemble{Owner: owner, Name: "night", Files: fmt.Sprint(p.made),
			Cluster: corral.ClusterID(p.pick("cluster")), Choice: json.RawMessage("{}"),
			Pilots:   record.Pilots{Site: "hpc", SiteID: corral.SiteID(p.pick("site"))},
			Progress: record.Progress{Members: []record.Member{{Workflow: "w", Standing: record.Waiting}}}}))
	},
}

// Whatever two owners and the background work for them do, in any order, no row of one refers to an object of the
// other; and some changes of each kind succeed.
func TestNoRowPointsAtAnothersObject(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	p := &pair{db: open(t, path), did: map[string]int{}, ids: map[string][]int64{}}
	names, cases := slices.Sorted(maps.Keys(changes)), 0
	rapid.Check(t, func(rt *rapid.T) {
		p.T = rt
		for range rapid.IntRange(20, 200).Draw(rt, "changes") {
			name, owner := rapid.SampledFrom(names).Draw(rt, "change"), rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "owner")
			p.made++
			p.owner = owner
			// A refused change changes nothing.
			err := p.opener(owner).Write(t.Context(), store.Actor, func(tx *store.Tx) error { return changes[name](p, tx, owner) })
			if err == nil {
				p.did[name]++
				p.ids[name+owner] = append(p.ids[name+owner], int64(p.did[name]))
				if name == "reserve" { // it creates a glidein
					p.did["glidein"]++
					p.ids["glidein"+owner] = append(p.ids["glidein"+owner], int64(p.did["glidein"]))
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
