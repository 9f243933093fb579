package request

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/resubmit"
)

const maxBrokers = 16

// Glidein returns the glidein that is asked for, as far as that needs no look at its site and cluster; Place does the
// rest.
func Glidein(in api.NewGlidein, now time.Time) (corral.Glidein, error) {
	var k checker
	k.invalid(in.Site == "", "site", "missing")
	serve := matching.CutAfter(time.Duration(in.Walltime) - jobfiles.Reserve(time.Duration(in.Walltime)))
	k.invalid(in.Overlap != 0 && time.Duration(in.Overlap) >= serve, "overlap_s",
		"%s is not less than the %s that workers serve of a walltime of %s", in.Overlap, serve, in.Walltime)
	k.invalid(in.NotBefore.After(now.Add(time.Duration(maxSpan))), "not_before",
		"%s is more than %s ahead", in.NotBefore.Format(time.RFC3339), maxSpan)
	k.broker(in)
	k.labels(in.Labels)
	k.options(in.BatchOptions)
	g := corral.Glidein{
		Hosts: in.Hosts, CPUs: in.CPUs, MemoryMiB: in.MemoryMiB, GPUs: in.GPUs,
		Walltime: in.Walltime, Idle: in.Idle, Overlap: in.Overlap, QueueLimit: in.QueueLimit,
		Resubmit: k.policy(in, now), Labels: in.Labels, BatchOptions: in.BatchOptions,
		Broker: in.Broker, CCB: in.CCB, Slots: in.Slots,
	}
	if !in.NotBefore.IsZero() {
		g.NotBefore = in.NotBefore.UTC().Truncate(time.Millisecond) // the store keeps no more
	}
	return g, k.err
}

// policy reads for how long attempts follow each other. A deadline that is over would make a glidein that ends before
// it begins.
func (k *checker) policy(in api.NewGlidein, now time.Time) resubmit.Policy {
	policy, err := resubmit.Parse(in.Resubmit)
	k.invalid(err != nil, "resubmit", "%w", err)
	k.invalid(policy.Mode == resubmit.Until && !policy.Deadline.After(now), "resubmit", "%s is over", policy)
	policy.Retries = in.Retries
	return policy
}

// broker checks how workers are to be reached, and what they are to offer.
func (k *checker) broker(in api.NewGlidein) {
	oneOf(k, "broker", in.Broker, corral.BrokerModes)
	oneOf(k, "slots", in.Slots, corral.SlotModes)
	k.invalid(len(in.CCB) > maxBrokers, "ccb", "%d are more than %d", len(in.CCB), maxBrokers)
	k.invalid(len(in.CCB) > 0 && (in.Broker == corral.BrokerNone || in.Broker == corral.BrokerRelay), "ccb",
		"needs broker %s or %s, not %s", corral.BrokerAuto, corral.BrokerCCB, in.Broker)
	for _, address := range in.CCB {
		k.hostPort("ccb", address)
	}
}

// Place puts a glidein at a site and into a cluster: it fills in what the request leaves to them, and reports why they
// cannot give what is asked for. machine is this machine, as the queue that the batch system fork has here.
func Place(g *corral.Glidein, site corral.Site, cluster corral.Cluster, machine corral.SiteQueue) error {
	g.Site, g.Cluster = site.ID, cluster.ID
	var k checker
	if g.Broker == corral.BrokerRelay {
		k.relay(site, cluster)
	}
	if cluster.Kind == corral.Condor {
		g.Broker, g.Slots = cmp.Or(g.Broker, corral.BrokerAuto), cmp.Or(g.Slots, corral.SlotsPartitionable)
	} else {
		k.embedded(*g, cluster)
	}
	if k.err != nil {
		return k.err
	}
	return Fit(g, site, machine)
}

// embedded refuses what only workers of an HTCondor pool have a use for.
func (k *checker) embedded(g corral.Glidein, cluster corral.Cluster) {
	none := fmt.Sprintf("workers dial out to cluster %s of kind %s: it has no", cluster.Name, cluster.Kind)
	k.unsatisfiable(g.Broker == corral.BrokerCCB, "broker", "%s %s", none, g.Broker)
	k.unsatisfiable(len(g.CCB) > 0, "ccb", "%s %s", none, corral.BrokerCCB)
	k.unsatisfiable(g.Slots != "", "slots",
		"workers of cluster %s of kind %s have no slots", cluster.Name, cluster.Kind)
}

// relay refuses a relay where there cannot be one. Otherwise each attempt would fail with that and open the site's
// circuit breaker. HTCondor's daemons tell workers their pool's address, which the workers must find on their own node:
// that is why the pool has to listen on 127.0.0.1.
func (k *checker) relay(site corral.Site, cluster corral.Cluster) {
	pool, err := netip.ParseAddrPort(cluster.Collector)
	k.unsatisfiable(!strings.HasPrefix(site.Contact, "ssh:"), "broker",
		"site %s is not reached by ssh: there is no relay, and none is needed", site.Name)
	k.unsatisfiable(cluster.Attached, "broker",
		"a relay leads to pools that corrald runs, and cluster %s is attached", cluster.Name)
	k.unsatisfiable(err == nil && !pool.Addr().IsLoopback(), "broker", "a relay can stand for a pool that listens on "+
		"127.0.0.1, and that of cluster %s listens on %s: make a cluster with --address 127.0.0.1", cluster.Name, pool)
}
