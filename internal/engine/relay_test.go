package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
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
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
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
