package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/pool"
	"github.com/corral-pilot/corral/staging"
)

func TestWhoMayHaveARelay(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const embedded, here, there = corral.ClusterID(1), corral.ClusterID(2), corral.ClusterID(3)
	needs := map[corral.ClusterID]reconcile.Need{
		here: {Cluster: corral.Cluster{Collector: "127.0.0.1:9618"}}, there: {Cluster: corral.Cluster{Collector: "192.0.2.1:9618"}},
	}
	for _, tt := range []struct {
		name     string
		contact  string
		outbound *bool
		mode     corral.BrokerMode
		cluster  corral.ClusterID
		want     bool
		need     bool
	}{
		{"asked for", "ssh://hpc", &yes, corral.BrokerRelay, embedded, true, true},
		{"nothing is known of the nodes", "ssh://hpc", nil, corral.BrokerAuto, embedded, true, false},
		{"no mode is auto", "ssh://hpc", nil, "", embedded, true, false},
		{"nodes have no way", "ssh://hpc", &no, corral.BrokerAuto, there, true, true},
		{"nodes have a way", "ssh://hpc", &yes, corral.BrokerAuto, embedded, false, false},
		{"nodes have a way, and not to this pool", "ssh://hpc", &yes, corral.BrokerAuto, here, true, true},
		{"nodes have a way to this pool", "ssh://hpc", &yes, corral.BrokerAuto, there, false, false},
		{"no broker is wanted", "ssh://hpc", nil, corral.BrokerNone, embedded, false, false},
		{"ccb is wanted", "ssh://hpc", nil, corral.BrokerCCB, here, false, false},
		{"this machine", "local:", nil, corral.BrokerAuto, embedded, false, false},
	} {
		site := corral.Site{Contact: tt.contact, Facts: &corral.SiteFacts{Outbound: tt.outbound}}
		if got := mayRelay(site, corral.Glidein{Broker: tt.mode, Cluster: tt.cluster}, needs); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := needsRelay(site, corral.Glidein{Broker: tt.mode, Cluster: tt.cluster}, needs); got != tt.need {
			t.Errorf("%s: needed is %v, want %v", tt.name, got, tt.need)
		}
	}
}

// Through a relay an attempt of its site gets to corrald and to its own pool, and nobody else to anything.
func TestWhoComesThroughARelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := NewClusters(w.lg, w.db, pool.Config{})
	const token = Token("secret")
	var site, other corral.Site
	tags := map[string]corral.Job{}
	w.write(func(tx *store.Tx) (err error) {
		for name, s := range map[string]*corral.Site{"hpc": &site, "other": &other} {
			if *s, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "ssh://hpc", Batch: "fork", Root: "/r"}); err != nil {
				return err
			}
		}
		mine, err := pooled(tx, corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
		if err != nil {
			return err
		}
		theirs, err := pooled(tx, corral.Cluster{Name: "theirs", Collector: "192.0.2.1:9618", Attached: true})
		if err != nil {
			return err
		}
		for tag, cluster := range map[string]corral.ClusterID{"embedded": 1, "mine": mine.ID, "theirs": theirs.ID, "over": mine.ID, "late": mine.ID} {
			g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site.ID, Cluster: cluster, Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: corral.Seconds(time.Minute)})
			if err != nil {
				return err
			}
			job := corral.Job{Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: tag, TokenDigest: token.Digest(), TokenEndsAt: tx.Now().Add(time.Hour)}
			if tag == "late" {
				job.TokenEndsAt = tx.Now().Add(-time.Hour)
			}
			if tags[tag], err = tx.CreateJob(job); err != nil {
				return err
			}
		}
		_, err = tx.MoveJob(tags["over"].ID, corral.JobEvent{Move: corral.JobEnd, At: tx.Now(), Outcome: corral.OutcomeRemoved})
		return err
	})
	for _, tt := range []struct {
		name   string
		site   corral.SiteID
		target relay.Target
		tag    string
		token  string
		kind   corral.Kind // empty: admitted
	}{
		{"a worker of corrald", site.ID, relay.Workers, "embedded", "secret", ""},
		{"a pilot of a pool, to corrald", site.ID, relay.Workers, "mine", "secret", ""},
		{"a worker of a pool", site.ID, relay.Pool, "mine", "secret", ""},
		{"another token", site.ID, relay.Workers, "mine", "guessed", corral.Unauthenticated},
		{"no such attempt", site.ID, relay.Workers, "none", "secret", corral.Unauthenticated},
		{"another site's attempt", other.ID, relay.Workers, "mine", "secret", corral.Unauthenticated},
		{"an attempt that is over", site.ID, relay.Workers, "over", "secret", corral.Forbidden},
		{"a token that is over", site.ID, relay.Workers, "late", "secret", corral.Forbidden},
		{"a pool for corrald's worker", site.ID, relay.Pool, "embedded", "secret", corral.Forbidden},
		{"somebody else's pool", site.ID, relay.Pool, "theirs", "secret", corral.Forbidden},
	} {
		collector, err := clusters.admitThrough(t.Context(), tt.site, relay.NewRequest(tt.target, tt.tag, tt.token))
		if corral.KindOf(err) != tt.kind || tt.kind != "" && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.kind)
		}
		if tt.target == relay.Pool && err == nil && collector != "127.0.0.1:20001" {
			t.Errorf("%s: gets to %s", tt.name, collector)
		}
	}
}

// pooled returns a cluster that takes glideins, whose pool nobody has started.
func pooled(tx *store.Tx, c corral.Cluster) (corral.Cluster, error) {
	collector := c.Collector
	c.Owner, c.Kind = "local", corral.Condor
	c, err := tx.CreateCluster(c)
	if err == nil {
		c, err = tx.SetCluster(c.ID, func(c *corral.Cluster) { c.Collector = collector })
	}
	if err == nil {
		c, err = tx.MoveCluster(c.ID, corral.ClusterStarted, "")
	}
	return c, err
}

// through returns a READY site behind an sshd with these lines of configuration, and the folder of its package.
func (w *world) through(lines ...string) (s corral.Site, dir string) {
	w.t.Helper()
	sshd := gridsitetest.StartSSHD(w.t, lines...)
	w.cfg.Reach = NewReach(gridsite.SSHOptions{Home: sshd.Home})
	w.t.Cleanup(w.cfg.Reach.Close)
	w.start()
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: "far", Owner: "local", Contact: sshd.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "far")})
		return err
	})
	w.t.Cleanup(func() {
		own := NewReach(gridsite.SSHOptions{Home: sshd.Home}) // the engine closes its connection when the site is gone
		defer own.Close()
		w.removeOver(own, s.ID)
	})
	w.siteIs(s.ID, corral.SiteReady)
	s = w.siteNow(s.ID)
	dir, err := staging.Dir(s.Root, packages.Package{Name: s.Package, Digest: s.PackageDigest})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, dir
}

// relayedGlidein asks for one worker, through the relay.
func (w *world) relayedGlidein(site corral.SiteID) (g corral.Glidein) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site, Cluster: 1, Hosts: 1, CPUs: 1, MemoryMiB: 64,
			Walltime: corral.Seconds(5 * time.Minute), Broker: corral.BrokerRelay})
		return err
	})
	return g
}

// A relay that does not start says so at the site, and to the glidein that waits for it; and it goes with its site.
func TestRelayThatDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, dir := w.through()
	pilot := filepath.Join(dir, pilotInPackage)
	if err := os.Chmod(pilot, 0o644); err != nil {
		t.Fatal(err)
	}
	g := w.relayedGlidein(s.ID)
	const want = "Permission denied"
	w.until("the site says why", func() bool { return strings.Contains(w.siteNow(s.ID).RelayTrouble, want) })
	w.until("the glidein says why", func() bool {
		g := w.glideinNow(g.ID)
		return g.State == corral.GlideinWaiting && strings.HasPrefix(g.Reason, "the site's relay does not run: ") && strings.Contains(g.Reason, want)
	})
	if err := os.Chmod(pilot, 0o755); err != nil {
		t.Fatal(err)
	}
	w.attemptIs(g.ID, corral.JobRunning)
	if got := w.siteNow(s.ID).RelayTrouble; got != "" {
		t.Errorf("the site still says %q", got)
	}
	var p struct{ PID int }
	b, err := os.ReadFile(filepath.Join(s.Root, "relay.json"))
	if err := errors.Join(err, json.Unmarshal(b, &p)); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveSite(s.ID, corral.SiteForget, "forced")
		return err
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	runs := func() bool { // or has nobody who has noticed its end
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	for deadline := time.Now().Add(patience); runs(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the relay of a site that is gone still runs")
		}
	}
}

// Where the sshd has one session for each connection, the relay has a connection of its own.
func TestRelayBesideOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.through("MaxSessions 1")
	g := w.relayedGlidein(s.ID)
	w.attemptIs(g.ID, corral.JobRunning)
	if got := w.siteNow(s.ID); got.RelayTrouble != "" {
		t.Errorf("the relay says %q", got.RelayTrouble)
	}
	w.write(func(tx *store.Tx) error { // which the site does, though a relay runs
		_, err := tx.AskGlidein(g.ID, corral.AskCancel, "asked to")
		return err
	})
	w.until("the end of the glidein", func() bool { return w.glideinNow(g.ID).State.Terminal() })
}
