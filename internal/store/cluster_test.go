package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/google/go-cmp/cmp"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := corral.Cluster{Name: "pool", Owner: actor, Kind: corral.Condor}
	w.write(func(tx *store.Tx) (err error) { c, err = tx.CreateCluster(c); return err })
	w.refused(corral.Conflict, func(tx *store.Tx) error {
		_, err := tx.CreateCluster(corral.Cluster{Name: "pool", Owner: actor, Kind: corral.Embedded})
		return err
	})
	w.view(func(tx *store.Tx) error {
		byID, err := tx.Cluster(c.ID)
		if diff := cmp.Diff(c, byID); diff != "" || err != nil {
			t.Errorf("Cluster: %v %s", err, diff)
		}
		byName, err := tx.ClusterNamed("pool")
		if diff := cmp.Diff(c, byName); diff != "" || err != nil {
			t.Errorf("ClusterNamed: %v %s", err, diff)
		}
		list, err := tx.Clusters(store.Filter{})
		if len(list) != 2 {
			t.Errorf("Clusters = %v", list)
		}
		return err
	})
	for _, move := range []corral.ClusterMove{corral.ClusterStarted, corral.ClusterStop, corral.ClusterStopEnd, corral.ClusterStart, corral.ClusterFail} {
		w.write(func(tx *store.Tx) error { _, err := tx.MoveCluster(c.ID, move, ""); return err })
	}
	w.write(func(tx *store.Tx) error {
		set, err := tx.SetCluster(c.ID, func(c *corral.Cluster) { c.Collector, c.Version = "192.0.2.1:9618", "23.9.6" })
		if set.Collector != "192.0.2.1:9618" || set.Version != "23.9.6" {
			t.Errorf("set %+v", set)
		}
		return err
	})
	w.refused(corral.Internal, func(tx *store.Tx) error {
		_, err := tx.SetCluster(c.ID, func(c *corral.Cluster) { c.State = corral.ClusterReady })
		return err
	})
	remove := func(tx *store.Tx) error { _, err := tx.RemoveCluster(c.ID, "done"); return err }
	w.write(remove)
	w.refused(corral.Conflict, remove)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveCluster(c.ID, corral.ClusterRemoved, ""); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.ClusterNamed("pool"); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.RemoveCluster(99, ""); return err })
	want := "create >STARTING, started STARTING>READY, stop READY>STOPPING, stopped STOPPING>STOPPED, start STOPPED>STARTING, " +
		"fail STARTING>FAILED, remove FAILED>REMOVING, removed REMOVING>DELETED"
	if got := w.story(corral.ObjectCluster, int64(c.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

// An embedded cluster has no daemons to clean up: it is READY at once, and deleted at once.
func TestEmbeddedCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { _, err := tx.RemoveCluster(w.cluster.ID, "done"); return err })
	want := "create >READY, remove READY>REMOVING, removed REMOVING>DELETED"
	if got := w.story(corral.ObjectCluster, int64(w.cluster.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

// Only tokens of ended attempts must be revoked, and only once; tokens of queued attempts may have to be replaced.
func TestPoolTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()))
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	first := corral.PoolToken{ID: "a", Cluster: w.cluster.ID, Attempt: j.ID, EndsAt: soon}
	second := corral.PoolToken{ID: "b", Cluster: w.cluster.ID, Attempt: j.ID, EndsAt: soon.Add(time.Hour)}
	past := corral.PoolToken{ID: "c", Cluster: w.cluster.ID, Attempt: j.ID, EndsAt: soon.Add(-2 * time.Hour)}
	over := func(want ...corral.PoolToken) {
		t.Helper()
		w.view(func(tx *store.Tx) error {
			got, err := tx.PoolTokensOver(w.cluster.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			return err
		})
	}
	w.write(func(tx *store.Tx) error {
		return errors.Join(tx.AddPoolToken(first), tx.AddPoolToken(second), tx.AddPoolToken(past))
	})
	waiting := func(want ...corral.PoolToken) {
		t.Helper()
		w.view(func(tx *store.Tx) error {
			got, err := tx.PoolTokensWaiting(j.Site)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			return err
		})
	}
	waiting()
	w.move(j, corral.JobEvent{Move: corral.JobQueue, At: time.Now().UTC()})
	waiting(past, first, second)
	over()
	w.move(j, corral.JobEvent{Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeRemoved})
	over(first, second)
	w.write(func(tx *store.Tx) error { return tx.RevokedPoolToken("a") })
	over(second)
	next := w.attempt(w.createGlidein(w.newGlidein()))
	w.write(func(tx *store.Tx) error {
		return tx.AddPoolToken(corral.PoolToken{ID: "d", Cluster: w.cluster.ID, Attempt: next.ID, EndsAt: soon})
	})
	var ids string
	err := raw(t, w.path).QueryRow("select group_concat(id, ' ' order by id) from pool_tokens").Scan(&ids)
	if err != nil || ids != "a b d" {
		t.Errorf("tokens %q (%v) are kept, want all but the one that has ended, of an attempt that has", ids, err)
	}
}

func TestRemoveClusterRefusesWhileItIsNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	remove := func(tx *store.Tx) error { _, err := tx.RemoveCluster(w.cluster.ID, ""); return err }
	g := w.createGlidein(w.newGlidein())
	w.refused(corral.Conflict, remove)
	r := w.createRun(w.newRun("/runs/1"))
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskCancel, ""); return err })
	w.refused(corral.Conflict, remove)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveRun(r.ID, corral.RunFail, ""); return err })
	w.write(remove)
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.CreateRun(w.newRun("/runs/2")); return err })
}
