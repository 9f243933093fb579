package admission

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// patience is for operations that take some milliseconds on an idle machine.
const patience = 3 * time.Minute

// A world is the gate over a real store, which contains cluster default, of kind embedded, with id 1.
type world struct {
	t        *testing.T
	db       *store.DB
	key      Key
	clusters *Clusters
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: storetest.OpenTest(t), key: Key("a key of this test")}
	w.clusters = NewClusters(slog.New(slog.DiscardHandler), w.db, nil, dispatch.Config{})
	t.Cleanup(w.clusters.Close)
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
		return err
	})
	return w
}

func (w *world) write(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(context.Background(), "local", fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) view(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).View(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// site creates a READY site.
func (w *world) site(name string) (s corral.Site) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "local:", Batch: "fork", Root: "/" + name})
		for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
			if err == nil {
				s, err = tx.MoveSite(s.ID, move, "")
			}
		}
		return err
	})
	return s
}

// pool creates a READY cluster of kind condor whose pool is not running.
func (w *world) pool(k corral.Cluster) corral.Cluster {
	w.t.Helper()
	collector := k.Collector
	k.Owner, k.Kind = "local", corral.Condor
	w.write(func(tx *store.Tx) (err error) {
		if k, err = tx.CreateCluster(k); err == nil {
			k, err = tx.SetCluster(k.ID, func(k *corral.Cluster) { k.Collector = collector })
		}
		if err == nil {
			k, err = tx.MoveCluster(k.ID, corral.ClusterStarted, "")
		}
		return err
	})
	return k
}

// glidein requests one host with two CPUs for an hour.
func (w *world) glidein(site corral.SiteID, cluster corral.ClusterID) (g corral.Glidein) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site, Cluster: cluster, Hosts: 1, CPUs: 2, MemoryMiB: 1,
			Walltime: corral.Seconds(time.Hour)})
		return err
	})
	return g
}

// attempt creates an attempt of a new glidein, with the token for its tag.
func (w *world) attempt(site corral.SiteID, cluster corral.ClusterID, tag string, endsAt time.Time) (j corral.Job) {
	w.t.Helper()
	g := w.glidein(site, cluster)
	w.write(func(tx *store.Tx) (err error) {
		j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site, Glidein: g.ID, Tag: tag,
			TokenDigest: w.key.Token(tag).Digest(), TokenEndsAt: endsAt})
		return err
	})
	return j
}
