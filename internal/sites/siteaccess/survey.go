package siteaccess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	outputGap = 200 * time.Millisecond // between two reads of a probe's output

	// A node's clock may appear to be off by clockSlack, because its file server may delay a line by that much.
	clockSlack = 5 * time.Second
)

// Survey determines the properties of a site and records them. At a READY site a small job also examines a node,
// unless the site's queue delays it. Properties that could not be determined are mentioned in the facts' notes; an
// error means that the site or its batch system was not reached. The facts are recorded even if the caller has
// disconnected in the meantime: the job has run, and the next glidein is checked against them.
func (p *Prober) Survey(ctx context.Context, site corral.Site) (corral.SiteFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	facts, err := p.reach.Facts(ctx, site)
	if err != nil {
		return facts, err
	}
	if err := p.surveyNode(ctx, site, &facts); err != nil {
		facts.Notes = append(facts.Notes, Note("no worker node was examined: "+err.Error()))
	}
	recorded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = p.db.Owner(site.Owner).Write(recorded, store.Actor, func(tx *store.Tx) error {
		now, err := tx.Site(site.ID)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(now.BatchOptions, site.BatchOptions) { // the change of options has recorded its own facts
			return corral.ErrorAt(corral.Unavailable, "site",
				"the options of %s changed during the survey: probe it again", site.Name)
		}
		_, err = tx.SetSite(site.ID, func(s *corral.Site) { s.Facts = &facts })
		return err
	})
	return facts, err
}

// surveyNode adds a job's observations on its node to the facts.
func (p *Prober) surveyNode(ctx context.Context, site corral.Site, facts *corral.SiteFacts) error {
	if site.State != corral.SiteReady {
		return corral.Errorf(corral.Conflict, "the site is %s: only a site that is %s can have a probe",
			site.State, corral.SiteReady)
	}
	addresses, digest, err := p.address.For(site)
	if err != nil {
		return fmt.Errorf("finding the way in: %w", err)
	}
	request := map[string]jobfiles.NodeProbe{"node": {Addresses: addresses, CertDigest: digest}}
	return p.probe(ctx, site, request, func(output probeReader) error {
		return attendNode(ctx, output, site, facts)
	})
}

// attendNode waits for the probe's answer. The answer was written after the last read that did not contain it, which
// bounds the comparison of its clock with ours.
func attendNode(ctx context.Context, output probeReader, site corral.Site, facts *corral.SiteFacts) error {
	tick := time.NewTicker(outputGap)
	defer tick.Stop()
	wrote := false
	for after := time.Now(); ; {
		look := time.Now()
		text, err := output(ctx)
		wrote = wrote || len(text) > 0
		switch {
		case errors.Is(err, errUnseen):
			facts.Shared = new(bool)
			return corral.Errorf(corral.Failed, "the node does not see %s, where its pilots would be", site.Root)
		case errors.Is(err, errMute) && !wrote:
			facts.Shared = new(bool)
			return corral.Errorf(corral.Failed, "the job ended, and its output in %s is not visible from "+
				"here: worker nodes may not see it", site.Root)
		case err != nil:
			return err
		}
		if n, ok := nodeIn(text); ok {
			compare(n, site, facts, after, time.Now())
			return nil
		}
		after = look
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nodeIn finds a node's answer among other lines.
func nodeIn(text []byte) (n jobfiles.Node, ok bool) {
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &n) == nil && !n.Now.IsZero() {
			return n, true
		}
	}
	return n, false
}

// compare adds to the facts a node's answer, which was written between two times of our clock, and notes about
// problems.
func compare(n jobfiles.Node, site corral.Site, facts *corral.SiteFacts, after, before time.Time) {
	shared, outbound := true, n.Reached != ""
	facts.Shared, facts.Outbound = &shared, &outbound
	facts.Node = fmt.Sprintf("%s: %s, sees %s", n.Host, n.Libc, site.Root)
	if outbound {
		facts.Node += ", reaches corrald at " + n.Reached
	} else {
		facts.Notes = append(facts.Notes, Note("worker nodes cannot reach corrald: "+n.Trouble))
	}
	if n.Libc != site.Platform.Libc {
		facts.Notes = append(facts.Notes, Note(fmt.Sprintf("the node %s has %s, where setup found %s: "+
			"packages for the one may not run on the other", n.Host, n.Libc, site.Platform.Libc)))
	}
	var ahead time.Duration
	switch {
	case n.Now.After(before):
		ahead = n.Now.Sub(before)
	case n.Now.Before(after):
		ahead = n.Now.Sub(after)
	}
	if ahead.Abs() > clockSlack {
		facts.Notes = append(facts.Notes, Note(fmt.Sprintf("the clock of node %s is %s ahead of corrald's; "+
			"pilots refuse a node at more than a minute", n.Host, ahead.Round(time.Second))))
	}
}

// Note turns a text, which may have several lines, into one line of limited length, for notes and reasons.
func Note(text string) string {
	return gridsite.OneLine(strings.ReplaceAll(text, "\n", "; "))
}

// probeHold is how long a probe's node accepts connections; a probe whose result has been read ends earlier.
const probeHold = 20 * time.Second

// ProbeNetwork measures how a condor cluster's pool would reach workers at a READY site: a small job there connects
// to the pool, and corrald connects to the job. Nothing is left of the job; if corrald dies first, the recorded tag
// lets the next one end it.
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

// concluded returns the way in which workers of the cluster at the site would connect, given these findings. It
// combines a pilot's choice on its node (broker.Findings.Decide) with information that only corrald has: a pool that
// listens on corrald's own machine is reached from a site behind ssh through the relay, regardless of the measurements.
func concluded(site corral.Site, cluster corral.Cluster, findings broker.Findings) corral.NetworkProbe {
	p := corral.NetworkProbe{Site: site.Name, Cluster: cluster.Name}
	if cluster.Attached { // as its pilots do, for the same reason
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
		p.Broker, p.Reason = "", p.Reason+", and the site's relay is not running: "+site.RelayTrouble
	} else {
		p.Broker, p.Reason = corral.BrokerRelay, p.Reason+": the site's relay stands for it on each node"
	}
	return p
}

// OnLoopback reports whether a pool listens only on a loopback address.
func OnLoopback(collector string) bool {
	a, err := netip.ParseAddrPort(collector)
	return err == nil && a.Addr().IsLoopback()
}
