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

// Glidein returns the requested glidein, without the values that depend on its site and cluster, which Place adds.
func Glidein(in api.NewGlidein, now time.Time) (corral.Glidein, error) {
	var k checker
	k.invalid(in.Site == "", "site", "missing")
	serve := matching.CutAfter(time.Duration(in.Walltime) - jobfiles.Reserve(time.Duration(in.Walltime)))
	k.invalid(in.Overlap != 0 && time.Duration(in.Overlap) >= serve, "overlap_s",
		"%s is not less than the %s that workers serve of a walltime of %s", in.Overlap, serve, in.Walltime)
	k.invalid(in.NotBefore.After(now.Add(time.Duration(maxSpan))), "not_before",
		"%s is more than %s ahead", in.NotBefore.Format(time.RFC3339), maxSpan)
	k.invalid(in.MinStay > 0 && in.Idle == 0, "min_stay_s",
		"needs an idle time: without one, pilots never leave for lack of work")
	k.broker(in)
	k.labels(in.Labels)
	k.options(in.BatchOptions)
	g := corral.Glidein{
		Shape: in.Shape, Idle: in.Idle, MinStay: in.MinStay, Overlap: in.Overlap, QueueLimit: in.QueueLimit,
		Resubmit: k.policy(in, now), Labels: in.Labels, BatchOptions: in.BatchOptions,
		Broker: in.Broker, CCB: in.CCB, Slots: in.Slots,
	}
	if !in.NotBefore.IsZero() {
		g.NotBefore = in.NotBefore.UTC().Truncate(time.Millisecond) // the precision of the store
	}
	return g, k.err
}

// policy returns the resubmission policy. A deadline in the past would make a glidein that ends before it begins.
func (k *checker) policy(in api.NewGlidein, now time.Time) resubmit.Policy {
	policy, err := resubmit.Parse(in.Resubmit)
	k.invalid(err != nil, "resubmit", "%w", err)
	k.invalid(policy.Mode == resubmit.Until && !policy.Deadline.After(now), "resubmit", "%s has passed", policy)
	policy.Retries = in.Retries
	return policy
}

// broker checks how workers are to be reached, and which slots they are to offer.
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

// Place assigns a glidein to a site and a cluster. It fills in the values that depend on them, and returns an error if
// they cannot satisfy the request. machine is this machine, described as a queue of the batch system fork.
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

// embedded refuses options that only workers of an HTCondor pool use.
func (k *checker) embedded(g corral.Glidein, cluster corral.Cluster) {
	none := fmt.Sprintf("workers connect directly to cluster %s of kind %s, which does not support", cluster.Name,
		cluster.Kind)
	k.unsatisfiable(g.Broker == corral.BrokerCCB, "broker", "%s %s", none, g.Broker)
	k.unsatisfiable(len(g.CCB) > 0, "ccb", "%s %s", none, corral.BrokerCCB)
	k.unsatisfiable(g.Slots != "", "slots",
		"workers of cluster %s of kind %s have no slots", cluster.Name, cluster.Kind)
}

// relay refuses a relay that is not possible: each attempt would fail and open the site's circuit breaker. HTCondor's
// daemons send workers the address of their pool, which the workers must be able to reach on their own node: therefore
// the pool must listen on 127.0.0.1.
func (k *checker) relay(site corral.Site, cluster corral.Cluster) {
	pool, err := netip.ParseAddrPort(cluster.Collector)
	k.unsatisfiable(!strings.HasPrefix(site.Contact, "ssh:"), "broker",
		"site %s has no relay: a relay runs through an ssh contact", site.Name)
	k.unsatisfiable(cluster.Attached, "broker",
		"a relay needs a pool that corrald runs, and cluster %s is attached", cluster.Name)
	k.unsatisfiable(err == nil && !pool.Addr().IsLoopback(), "broker", "a relay needs a pool that listens on "+
		"127.0.0.1; that of cluster %s listens on %s: create a cluster with --address 127.0.0.1", cluster.Name, pool)
}
