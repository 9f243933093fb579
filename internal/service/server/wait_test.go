package server_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/server"
	"github.com/corral-pilot/corral/internal/store"
)

// later runs fn in a goroutine and returns a channel with its error.
func later(fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return done
}

// TestWaitForWorkers: the CPUs of registered workers count, not the batch system's status.
func TestWaitForWorkers(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	job := f.attempt(t, g, "a")
	worker := corral.Worker{Cluster: 1, Glidein: g.ID, Attempt: job.ID, CPUs: 1, Connected: true}

	got, err := f.WaitGlidein(t.Context(), g.ID, api.UntilWorkers, 10*time.Millisecond)
	wantKind(t, "no workers", err, corral.Timeout, "")
	if got.State != corral.GlideinActive {
		t.Errorf("glidein beside the error: %+v", got)
	}
	f.crowd.register(worker)
	lost := worker
	lost.Connected = false
	f.crowd.register(lost)
	_, err = f.WaitGlidein(t.Context(), g.ID, api.UntilWorkers, 10*time.Millisecond)
	wantKind(t, "one of two workers", err, corral.Timeout, "")

	done := later(func() (err error) {
		got, err = f.WaitGlidein(t.Context(), g.ID, api.UntilWorkers, 0)
		return err
	})
	f.crowd.register(worker)
	if err := <-done; err != nil || got.WorkersNow != 2 || got.CPUsNow != 2 {
		t.Errorf("WaitGlidein() = %d workers, %d cpus, %v, want 2, 2", got.WorkersNow, got.CPUsNow, err)
	}
}

// TestWaitEndsWhenItIsInVain: a finished glidein will never have workers.
func TestWaitEndsWhenItIsInVain(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	job := f.attempt(t, g, "a")
	done := later(func() error {
		_, err := f.WaitGlidein(t.Context(), g.ID, api.UntilWorkers, 0)
		return err
	})
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.MoveJob(job.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Reason: "no disk"})
		return err
	})
	wantKind(t, "failed", <-done, corral.Failed, "")
}

func TestWaitForStates(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	done := later(func() error {
		_, err := f.WaitGlidein(t.Context(), g.ID, "FINISHED,DELETED", 0)
		return err
	})
	must(f.RemoveGlidein(t.Context(), g.ID, false))(t)
	if err := <-done; err != nil {
		t.Errorf("WaitGlidein(DELETED): %v", err)
	}
	if site, err := f.WaitSite(t.Context(), "local", "READY", time.Minute); err != nil || site.State != corral.SiteReady {
		t.Errorf("WaitSite(READY) = %v, %v", site, err)
	}
	_, err := f.WaitSite(t.Context(), "local", "workers", 0)
	wantKind(t, "what sites do not have", err, corral.Invalid, "wait")
}

// A client that waits for one glidein is not woken by changes to others: a hundred waiters and fifty commits a second
// would keep a processor busy.
func TestWaitersAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	waited, other := f.glidein(t), f.glidein(t)
	done := later(func() error {
		_, err := f.WaitGlidein(t.Context(), waited.ID, "DELETED", 0)
		return err
	})
	for range 200 {
		f.write(t, func(tx *store.Tx) error { return tx.Log(corral.ObjectGlidein, int64(other.ID), "note", "") })
	}
	must(f.RemoveGlidein(t.Context(), waited.ID, false))(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.crowd.mu.Lock()
	defer f.crowd.mu.Unlock()
	if f.crowd.looks > 20 {
		t.Errorf("%d looks at who is registered while nothing happened to the glidein", f.crowd.looks)
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := later(func() error {
		_, err := f.WaitSite(ctx, "local", "DELETED", 0)
		return err
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("WaitSite() of a cancelled context gives no error")
	}
}

// TestStopEndsWaits: a stopping server does not block on waiting clients.
func TestStopEndsWaits(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	status := make(chan int, 1)
	go func() {
		code, _, _ := f.send(t, "GET", "/v1/sites/local?wait=DELETED&timeout_s=60", "")
		status <- code
	}()
	f.server.Stop()
	if got := <-status; got != 503 {
		t.Errorf("a wait answered %d, want 503", got)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(slog.New(slog.DiscardHandler), f.db, server.Config{Version: "v", Runs: newRuns(t, f.db, f.bench), Reach: f.config.Reach, Workers: f.config.Workers, Metrics: f.config.Metrics})
	ctx, cancel := context.WithCancel(t.Context())
	served := later(func() error { return srv.Serve(ctx, l) })
	client := must(api.New("unix:" + socket))(t)
	defer client.Close()
	if h := must(client.Health(t.Context()))(t); h.Version != "v" {
		t.Errorf("Health() = %+v", h)
	}
	waiting := later(func() error {
		_, err := client.WaitSite(t.Context(), "local", "DELETED", 0)
		return err
	})
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve() = %v", err)
	}
	wantKind(t, "a wait at the end", <-waiting, corral.Unavailable, "unix:"+socket)
}
