package admission

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
)

// far stands for HTCondor's pools, which take seconds each to start and are tested behind the gate in package engine.
type far struct {
	workers []corral.Worker
	stopped bool // just after the cluster was seen READY
}

func (f far) Mint(context.Context, corral.ClusterID, corral.JobID, time.Duration) (string, time.Time, error) {
	return "secret", time.Time{}, nil
}

func (f far) Workers(id corral.ClusterID) []corral.Worker {
	if id == 1 {
		return nil
	}
	return f.workers
}

func (f far) Waiting(context.Context, corral.ClusterID) ([]matching.Class, error) { return nil, nil }

func (f far) Queue(corral.Cluster) (run.Dispatcher, error) { return nil, errors.New("the pool's") }

func (f far) Stream(corral.ClusterID) (*stream.Stream, error) {
	if f.stopped {
		return nil, corral.Errorf(corral.Conflict, "the pool is stopped")
	}
	return nil, errors.New("the pool's stream")
}

func (f far) Streamed(corral.ClusterID) *stream.Stream { return nil }

// Tasks are sent to the queue of a READY cluster: corrald's own or its pool's.
func TestQueueOfACluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.pool(corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
	if q, err := w.clusters.Queue(1, corral.RunOptions{}); err != nil || q == nil {
		t.Errorf("embedded: %v, %v", q, err)
	}
	_, _, err := w.clusters.Mint(t.Context(), pool.ID, 1, time.Hour)
	if corral.KindOf(err) != corral.Unavailable {
		t.Errorf("a token without pools: %v", err)
	}
	if _, err = w.clusters.Queue(pool.ID, corral.RunOptions{}); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("condor, without pools: %v", err)
	}
	if _, err = w.clusters.Queue(9, corral.RunOptions{}); corral.KindOf(err) != corral.NotFound {
		t.Errorf("no such cluster: %v", err)
	}
	w.clusters.UsePools(far{})
	if _, err = w.clusters.Queue(pool.ID, corral.RunOptions{}); err == nil || err.Error() != "the pool's" {
		t.Errorf("condor: %v", err)
	}
	if _, err = w.clusters.Queue(pool.ID, corral.RunOptions{Stream: true}); err == nil || err.Error() != "the pool's stream" {
		t.Errorf("condor, streamed: %v", err)
	}
	w.clusters.UsePools(far{stopped: true})
	if q, err := w.clusters.Queue(pool.ID, corral.RunOptions{Stream: true}); q != nil || corral.KindOf(err) != corral.Conflict {
		t.Errorf("condor, streamed and stopped: %v, %v", q, err)
	}
	w.clusters.UsePools(struct{ Pools }{far{}}) // without streams
	if q, err := w.clusters.Queue(pool.ID, corral.RunOptions{Stream: true}); q != nil || corral.KindOf(err) != corral.Unavailable {
		t.Errorf("condor, without streams: %v, %v", q, err)
	}
	if secret, _, err := w.clusters.Mint(t.Context(), pool.ID, 1, time.Hour); err != nil || secret != "secret" {
		t.Errorf("a token: %q, %v", secret, err)
	}
	w.write(func(tx *store.Tx) error { _, err := tx.MoveCluster(pool.ID, corral.ClusterStop, ""); return err })
	if _, err = w.clusters.Queue(pool.ID, corral.RunOptions{}); corral.KindOf(err) != corral.Conflict {
		t.Errorf("condor, stopping: %v", err)
	}
}

// An offer counts the connected workers and those that glideins will bring; an attempt that is asked to drain stays
// drained.
func TestOffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site := w.site("here")
	pool := w.pool(corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
	a := w.attempt(site.ID, pool.ID, "tag", time.Now().Add(time.Hour))
	w.glidein(site.ID, pool.ID) // its attempt has not started yet
	w.clusters.UsePools(far{workers: []corral.Worker{
		{ID: "1", Attempt: a.ID, CPUs: 2, Connected: true}, {ID: "2", Attempt: 99, CPUs: 1, Connected: true, Draining: true}, {ID: "3", Attempt: 99, CPUs: 1},
	}})
	offer, err := w.clusters.Offer(t.Context(), pool.ID)
	if err != nil || offer.CPUs != 2 || len(offer.Capacities) != 4 {
		t.Errorf("offer %+v (%v), want 2 cpus, and a capacity of each worker and of the glidein without any", offer, err)
	}
	var glideins []corral.Glidein
	w.view(func(tx *store.Tx) (err error) { glideins, err = tx.Glideins(store.GlideinFilter{}); return err })
	if got := w.clusters.Registered(glideins); len(got) != 2 || len(got[a.ID]) != 1 || got[a.ID][0].Cluster != pool.ID {
		t.Errorf("registered: %+v", got)
	}
	w.clusters.Drain(pool.ID, a.ID)
	w.clusters.dispatcher(1)
	w.clusters.Drain(1, a.ID)
	if got := w.clusters.Workers(1); len(got) != 0 {
		t.Errorf("the embedded cluster has %+v", got)
	}
}

// A key is created once, with private mode, and an invalid one is refused.
func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	first, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadKey(path)
	if err != nil || again.Token("a") != first.Token("a") || again.Token("a") == first.Token("b") {
		t.Errorf("the key of another start makes other tokens (%v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if owner := first.Owner(); owner != again.Owner() || owner == Key("another").Owner() || !strings.Contains(owner, "@") {
		t.Errorf("owner %q", owner)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); corral.KindOf(err) != corral.Invalid {
		t.Errorf("a short key: %v, want Invalid", err)
	}
	if _, err := LoadKey(filepath.Join(dir, "none", "key")); err == nil {
		t.Error("a key that cannot be kept is not an error")
	}
}
