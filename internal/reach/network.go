package reach

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
)

// probeHold is how long the node of a probe can be dialled; a probe that is read is ended before.
const probeHold = 20 * time.Second

// ProbeNetwork measures how the pool of a cluster of kind condor would reach workers at a READY site: a small job there
// dials the pool, and is dialled by us. Nothing of it is left; should we die before that, its row has it ended when we
// are back.
func (p *Prober) ProbeNetwork(
	ctx context.Context, site corral.Site, cluster corral.Cluster,
) (corral.NetworkProbe, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var findings broker.Findings
	request := broker.Probe{Collector: cluster.Collector, Hold: corral.Seconds(probeHold)}
	err := p.probe(ctx, site, request, func(output probeReader) (err error) {
		findings, err = broker.Attend(ctx, output)
		return err
	})
	if err != nil {
		return corral.NetworkProbe{Site: site.Name, Cluster: cluster.Name}, err
	}
	return concluded(site, cluster, findings), nil
}

// concluded says what workers of the cluster at the site would do with these findings.
func concluded(site corral.Site, cluster corral.Cluster, findings broker.Findings) corral.NetworkProbe {
	p := corral.NetworkProbe{Site: site.Name, Cluster: cluster.Name}
	if cluster.Attached { // as its pilots do, for their reason
		findings.Node = broker.Node{
			Trouble: "the schedd of an attached pool may be elsewhere than corrald, which would dial",
		}
	}
	choice, none := findings.Decide(corral.BrokerAuto)
	p.Broker, p.Reason, p.Measured = choice.Way, choice.Reason, findings.Lines()
	if none != nil {
		p.Reason = none.Error()
	}
	if none == nil || !strings.HasPrefix(site.Contact, "ssh:") || cluster.Attached || !OnLoopback(cluster.Collector) {
		return p
	}
	p.Reason = "the pool listens on " + cluster.Collector + ", which no other machine reaches"
	if site.RelayTrouble != "" {
		p.Broker, p.Reason = "", p.Reason+", and the site's relay does not run: "+site.RelayTrouble
	} else {
		p.Broker, p.Reason = corral.BrokerRelay, p.Reason+": the site's relay stands for it on each node"
	}
	return p
}

// OnLoopback reports whether a pool listens where only its own machine reaches it.
func OnLoopback(collector string) bool {
	a, err := netip.ParseAddrPort(collector)
	return err == nil && a.Addr().IsLoopback()
}
