package store_test

import (
	"testing"

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
	remove := func(tx *store.Tx) error {
		deleted, err := tx.DeleteCluster(c.ID, "done")
		if err == nil && (deleted.State != corral.ClusterDeleted || deleted.Reason != "done") {
			t.Errorf("deleted %+v", deleted)
		}
		return err
	}
	w.write(remove)
	w.refused(corral.Conflict, remove)
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.ClusterNamed("pool"); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.DeleteCluster(99, ""); return err })
	if got, want := w.story(store.ObjectCluster, int64(c.ID)), "create >READY, delete READY>DELETED"; got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestDeleteClusterRefusesWhileItIsNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	remove := func(tx *store.Tx) error { _, err := tx.DeleteCluster(w.cluster.ID, ""); return err }
	g := w.createGlidein(w.newGlidein())
	w.refused(corral.Conflict, remove)
	r := w.createRun(w.newRun("/runs/1"))
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskCancel, ""); return err })
	w.refused(corral.Conflict, remove)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveRun(r.ID, corral.RunFail, ""); return err })
	w.write(remove)
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.CreateRun(w.newRun("/runs/2")); return err })
}
