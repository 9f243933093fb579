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
	outputGap = 200 * time.Millisecond // between two looks at what a probe has written

	// By clockSlack a node's clock may seem to be off: its file server may hide a line so long.
	clockSlack = 5 * time.Second
)

// Survey finds out what a site is like and records it. At a READY one a small job looks at a node, too, unless the
// site's queue keeps it waiting. What could not be found out is among the notes of the facts; an error says that the
// site, or its batch system, was not reached. The facts are recorded even if whoever asked has gone meanwhile: the job
// has run, and the next glidein is checked by what it saw.
func (p *Prober) Survey(ctx context.Context, site corral.Site) (corral.SiteFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	facts, err := p.reach.Facts(ctx, site)
	if err != nil {
		return facts, err
	}
	if err := p.surveyNode(ctx, site, &facts); err != nil {
		facts.Notes = append(facts.Notes, Note("no worker node was looked at: "+err.Error()))
	}
	recorded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = p.db.Owner(site.Owner).Write(recorded, store.Actor, func(tx *store.Tx) error {
		now, err := tx.Site(site.ID)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(now.BatchOptions, site.BatchOptions) { // whoever changed them has recorded what they give
			return corral.ErrorAt(corral.Unavailable, "site",
				"the options of %s changed while it was looked at: probe it again", site.Name)
		}
		_, err = tx.SetSite(site.ID, func(s *corral.Site) { s.Facts = &facts })
		return err
	})
	return facts, err
}

// surveyNode adds what a job sees of the node that it is on.
func (p *Prober) surveyNode(ctx context.Context, site corral.Site, facts *corral.SiteFacts) error {
	if site.State != corral.SiteReady {
		return corral.Errorf(corral.Conflict, "the site is %s, and only one that is %s can have a probe",
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

// attendNode waits for what the probe says. It wrote that after the last look that did not show it, which is how its
// clock is compared with ours.
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
			return corral.Errorf(corral.Failed, "the job ended, and nothing that it wrote to %s is to be seen from "+
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

// nodeIn finds a node's answer among lines of others.
func nodeIn(text []byte) (n jobfiles.Node, ok bool) {
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &n) == nil && !n.Now.IsZero() {
			return n, true
		}
	}
	return n, false
}

// compare adds a node's answer, which was written between two times of ours, and what is wrong with it.
func compare(n jobfiles.Node, site corral.Site, facts *corral.SiteFacts, after, before time.Time) {
	shared, outbound := true, n.Reached != ""
	facts.Shared, facts.Outbound = &shared, &outbound
	facts.Node = fmt.Sprintf("%s: %s, sees %s", n.Host, n.Libc, site.Root)
	if outbound {
		facts.Node += ", reaches corrald at " + n.Reached
	} else {
		facts.Notes = append(facts.Notes, Note("worker nodes do not reach corrald: "+n.Trouble))
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

// Note makes one line of limited length of a text that may have several, for notes and reasons.
func Note(text string) string {
	return gridsite.OneLine(strings.ReplaceAll(text, "\n", "; "))
}

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

// concluded says what workers of the cluster at the site would do with these findings. It is the choice that a pilot
// makes on its node (broker.Findings.Decide), and what only corrald knows: a pool that listens on corrald's own machine
// is reached from a site behind ssh by the relay, whatever was measured.
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
