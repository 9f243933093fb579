package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/embedded/port"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// Who may come in through the worker port.
func TestAdmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
	t.Cleanup(clusters.Close)
	attempt := func(name string, endsAt time.Time) (j corral.Job) {
		w.write(func(tx *store.Tx) error {
			s, err := tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "local:", Batch: "fork", Root: "/" + name})
			if err != nil {
				return err
			}
			for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
				if _, err := tx.MoveSite(s.ID, move, ""); err != nil {
					return err
				}
			}
			g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1, Hosts: 1, CPUs: 1, MemoryMiB: 1, Walltime: corral.Seconds(time.Hour), Resubmit: resubmit.Policy{}})
			if err != nil {
				return err
			}
			tag := newTag(corral.PilotJob)
			j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.ID, Glidein: g.ID, Tag: tag, TokenDigest: w.cfg.Key.Token(tag).Digest(), TokenEndsAt: endsAt})
			return err
		})
		return j
	}
	later := time.Now().Add(time.Hour)
	good, other := attempt("good", later), attempt("other", later)
	expired, over := attempt("expired", time.Now().Add(-time.Second)), attempt("over", later)
	w.write(func(tx *store.Tx) error {
		if _, err := tx.LeaseJob(good.ID, "pilot-a"); err != nil {
			return err
		}
		_, err := tx.MoveJob(over.ID, corral.JobEvent{Move: corral.JobEnd, At: time.Now(), Outcome: corral.OutcomeRemoved})
		return err
	})
	credentials := func(tag, tokenOf string, role wire.Role, holder string) port.Credentials {
		return port.Credentials{Tag: tag, TokenDigest: w.cfg.Key.Token(tokenOf).Digest(), Role: role, Holder: holder}
	}
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
		{"a worker of another pilot", credentials(good.Tag, good.Tag, wire.RoleWorker, "pilot-b"), corral.Forbidden, "lease"},
		{"a worker before any lease", credentials(other.Tag, other.Tag, wire.RoleWorker, ""), corral.Forbidden, "lease"},
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

// The first pilot gets the attempt; the same one may ask again, another one never gets it.
func TestLeaseIsForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.until("the lease is taken", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].LeaseHolder != "" })
	a := w.glideinNow(g.ID).Attempts[0]
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
	t.Cleanup(clusters.Close)
	if err := clusters.Lease(context.Background(), a.ID, a.LeaseHolder); err != nil {
		t.Errorf("the holder asks again: %v", err)
	}
	if err := clusters.Lease(context.Background(), a.ID, "another"); corral.KindOf(err) != corral.Conflict {
		t.Errorf("another pilot asks: %v, want a conflict", err)
	}
}
