package admission

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/store"
)

// Admission at the worker port.
func TestAdmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters
	attempt := func(name string, endsAt time.Time) corral.Job {
		return w.attempt(w.site(name).ID, 1, NewTag(corral.PilotJob), endsAt)
	}
	later := time.Now().Add(time.Hour)
	good, other := attempt("good", later), attempt("other", later)
	expired, over := attempt("expired", time.Now().Add(-time.Second)), attempt("over", later)
	w.write(func(tx *store.Tx) error {
		if _, err := tx.LeaseJob(good.ID, "pilot-a", "secret of pilot-a"); err != nil {
			return err
		}
		_, err := tx.MoveJob(over.ID, corral.JobEvent{Move: corral.JobEnd, At: time.Now(), Outcome: corral.OutcomeRemoved})
		return err
	})
	credentials := func(tag, tokenOf string, role wire.Role, holder string) port.Credentials {
		c := port.Credentials{Tag: tag, TokenDigest: w.key.Token(tokenOf).Digest(), Role: role, Holder: holder,
			Session: "secret of " + holder}
		if role == wire.RoleWorker {
			c.Worker, c.Shape = tag+"/0", corral.Resources{CPUs: 2, MemoryMiB: 1, DiskMiB: 1000}
		}
		return c
	}
	as := func(c port.Credentials, change func(*port.Credentials)) port.Credentials { change(&c); return c }
	worker := credentials(good.Tag, good.Tag, wire.RoleWorker, "pilot-a")
	tests := []struct {
		name string
		cred port.Credentials
		kind corral.Kind
		says string
	}{
		{"a worker of the pilot that holds the lease", credentials(good.Tag, good.Tag, wire.RoleWorker, "pilot-a"), "", ""},
		{"a pilot that asks for the lease", credentials(good.Tag, good.Tag, wire.RolePilot, "pilot-b"), "", ""},
		{"a wrong token", credentials(good.Tag, "nonsense", wire.RoleWorker, "pilot-a"), corral.Unauthenticated, "not this attempt's"},
		{"another attempt's token", credentials(good.Tag, other.Tag, wire.RoleWorker, "pilot-a"), corral.Unauthenticated, "not this attempt's"},
		{"an expired token", credentials(expired.Tag, expired.Tag, wire.RolePilot, "pilot-a"), corral.Unauthenticated, "expired at"},
		{"an unknown attempt", credentials("corral-pilot-none", good.Tag, wire.RolePilot, "pilot-a"), corral.Unauthenticated, "not known"},
		{"an attempt that is over", credentials(over.Tag, over.Tag, wire.RolePilot, "pilot-a"), corral.Forbidden, "ended as removed"},
		{"a worker that guesses the holder", as(worker, func(c *port.Credentials) { c.Session = "guess" }), corral.Unauthenticated, "the secret is not"},
		{"a worker without the secret", as(worker, func(c *port.Credentials) { c.Session = "" }), corral.Invalid, "must show the secret"},
		{"a pilot without a secret", as(credentials(good.Tag, good.Tag, wire.RolePilot, "pilot-a"), func(c *port.Credentials) { c.Session = "" }),
			corral.Invalid, "must show the secret"},
		{"a courier", as(worker, func(c *port.Credentials) { c.Role = wire.RoleCourier }), "", ""},
		{"a courier of another worker", as(worker, func(c *port.Credentials) { c.Role, c.Worker = wire.RoleCourier, good.Tag+"/7" }),
			corral.Forbidden, "is not one of them"},
		{"a worker of a host too many", as(worker, func(c *port.Credentials) { c.Worker = good.Tag + "/1" }), corral.Forbidden, "is not one of them"},
		{"a worker with another spelling", as(worker, func(c *port.Credentials) { c.Worker = good.Tag + "/00" }), corral.Forbidden, "is not one of them"},
		{"a worker on another worker", as(worker, func(c *port.Credentials) { c.Worker = "pilot-a+1" }), corral.Forbidden, "is not one of them"},
		{"a worker of too many cpus", as(worker, func(c *port.Credentials) { c.Shape.CPUs = 1 << 16 }), corral.Forbidden, "has 2 CPUs on a host"},
		{"a worker of too much memory", as(worker, func(c *port.Credentials) { c.Shape.MemoryMiB = 2 }), corral.Forbidden, "has 1 MiB on a host"},
		{"a worker of too many GPUs", as(worker, func(c *port.Credentials) { c.Shape.GPUs = 1 }), corral.Forbidden, "has 0 GPUs on a host"},
		{"a smaller worker", as(worker, func(c *port.Credentials) { c.Shape.CPUs = 1 }), "", ""},
		{"a worker of another pilot", credentials(good.Tag, good.Tag, wire.RoleWorker, "pilot-b"), corral.Forbidden, "lease"},
		{"a worker before any lease", credentials(other.Tag, other.Tag, wire.RoleWorker, "pilot-a"), corral.Unavailable, "its pilot has not come back"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := clusters.Admit(context.Background(), tt.cred)
			if corral.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Admit = %v (kind %q), want kind %q saying %q", err, corral.KindOf(err), tt.kind, tt.says)
			}
		})
	}
}

// The first pilot gets the attempt's lease; it may ask again, but another pilot never gets it.
func TestLeaseIsForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(w.site("here").ID, 1, "tag", time.Now().Add(time.Hour))
	for range 2 {
		if err := w.clusters.Lease(t.Context(), a.ID, "pilot-a", "secret"); err != nil {
			t.Errorf("the holder asks: %v", err)
		}
	}
	err := w.clusters.Lease(t.Context(), a.ID, "another", "secret")
	if corral.KindOf(err) != corral.Conflict || strings.Contains(err.Error(), "pilot-a") {
		t.Errorf("another pilot asks: %v, want a conflict that does not name the holder", err)
	}
}

// Pilots of an HTCondor cluster are admitted at the worker port; its workers belong to the pool.
func TestAdmitToAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.pool(corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
	a := w.attempt(w.site("here").ID, pool.ID, "tag", time.Now().Add(time.Hour))
	if err := w.clusters.Lease(t.Context(), a.ID, "pilot", "secret"); err != nil {
		t.Fatal(err)
	}
	cred := port.Credentials{Tag: a.Tag, TokenDigest: a.TokenDigest, Role: wire.RolePilot, Holder: "pilot", Session: "secret"}
	if in, err := w.clusters.Admit(t.Context(), cred); err != nil || in.Dispatcher != nil || in.Cluster != pool.ID {
		t.Errorf("the pilot: %+v, %v; want it linked, without a dispatcher", in, err)
	}
	cred.Role = wire.RoleWorker
	if _, err := w.clusters.Admit(t.Context(), cred); corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), "mine") {
		t.Errorf("a worker: %v, want it forbidden", err)
	}
}

// A pilot's report is added to its attempt's history and wakes the callers that wait for changes of workers.
func TestPilotsReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(w.site("here").ID, 1, "tag", time.Now().Add(time.Hour))
	for _, tell := range []func() error{
		func() error { return w.clusters.Report(t.Context(), a.ID, "starting", "2 workers") },
		func() error {
			return w.clusters.LoseHost(t.Context(), a.ID, corral.LostHost{Node: "n1; rm", Why: "scratch\nis full"})
		},
	} {
		changed := w.clusters.Changed()
		if err := tell(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("no waiter is woken")
		}
	}
	var said []string
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectJob, int64(a.ID), store.Page{})
		for _, e := range entries {
			said = append(said, e.Event+": "+e.Reason)
		}
		return err
	})
	if all := strings.Join(said, "; "); !strings.Contains(all, "starting: 2 workers") || !strings.Contains(all, "scratch is full") || strings.Contains(all, "rm") {
		t.Errorf("history %q", said)
	}
}

// A worker that does not belong to the attempt is recorded once in its history, regardless of how often it tries.
func TestMisfitIsNotedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(w.site("here").ID, 1, "tag", time.Now().Add(time.Hour))
	if err := w.clusters.Lease(t.Context(), a.ID, "pilot", "secret"); err != nil {
		t.Fatal(err)
	}
	cred := port.Credentials{Tag: a.Tag, TokenDigest: a.TokenDigest, Role: wire.RoleWorker, Holder: "pilot", Session: "secret",
		Worker: "tag/0", Shape: corral.Resources{CPUs: 65536, MemoryMiB: 1}}
	again := NewClusters(slog.New(slog.DiscardHandler), w.db, nil, dispatch.Config{}) // a restarted corrald
	t.Cleanup(again.Close)
	for _, clusters := range []*Clusters{w.clusters, w.clusters, again} {
		if _, err := clusters.Admit(t.Context(), cred); corral.KindOf(err) != corral.Forbidden {
			t.Fatalf("a worker of 65536 cpus: %v, want it forbidden", err)
		}
	}
	noted := 0
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectJob, int64(a.ID), store.Page{})
		for _, e := range entries {
			if e.Event == "worker refused" && strings.Contains(e.Reason, "65536") {
				noted++
			}
		}
		return err
	})
	if noted != 1 {
		t.Errorf("noted %d times, want once", noted)
	}
}
