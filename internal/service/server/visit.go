package server

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/service/server/visits"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A visitor goes to sites for requests that have to know something of them first: a site is looked at before it is
// created, before its options change, and when a probe is asked for. Everything that may take minutes or wants a person
// is here; no transaction is open meanwhile.
type visitor struct {
	reach  *siteaccess.Reach
	prober Prober
	visits *visits.Keeper
}

// create makes a site. The site is visited before there is a row, so that a contact, a root or an option that does not
// work is an answer to the person who asked and leaves nothing behind. Before that, the store is asked whether name and
// root are free: the visit may cost the person a password. In the transaction both are looked at once more.
func (h *siteHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewSite) (rest.Step[corral.Site], error) {
		site, err := admit.ReadSite(c.Caller(), in, h.roots)
		if err == nil {
			err = h.visitor.visits.MayReach(c.Caller(), site.Contact)
		}
		if err == nil {
			err = h.DB.Request(ctx).View(ctx, func(tx *store.Tx) error { return admit.FreeSite(tx, site) })
		}
		if err == nil {
			err = h.visitor.visits.May(c.Caller(), time.Now())
		}
		if err == nil {
			site, err = h.visitor.visited(ctx, site, in.AcceptHostKey)
		}
		if err != nil {
			return rest.Step[corral.Site]{}, visits.Entry(c.Caller(), err)
		}
		return rest.Only(func(tx *store.Tx) (corral.Site, error) { return admit.Site(tx, site) })
	})
}

// visited is the site with its root as it is there, and with what its batch system says of itself, so that even the
// first glidein is checked; or the reason why it cannot be a site.
func (v visitor) visited(ctx context.Context, site corral.Site, acceptHostKey bool) (_ corral.Site, err error) {
	defer func() {
		if err != nil {
			v.reach.Refuse(site)
		}
	}()
	if strings.HasPrefix(site.Root, "$") {
		if site.Root, err = v.reach.ExpandRoot(ctx, site, acceptHostKey); err == nil {
			err = request.CheckRoot(site.Root)
		}
	}
	if err == nil {
		err = v.reach.CheckSite(ctx, site, acceptHostKey)
	}
	if err == nil {
		site.Facts, err = v.facts(ctx, site)
	}
	if err != nil || site.Facts == nil {
		return site, err
	}
	if err := request.CheckRoom(site); err != nil {
		return site, err
	}
	return site, request.CheckQueues(site)
}

// facts asks a site what its batch system has; nil: it does not tell, and then nothing is refused for want of it.
func (v visitor) facts(ctx context.Context, site corral.Site) (*corral.SiteFacts, error) {
	facts, err := v.reach.Facts(ctx, site)
	if err != nil || facts.At.IsZero() {
		return nil, err
	}
	return &facts, nil
}

// checkSet checks a change of a site. For options that change it asks the site what they would give: what the user may
// have depends on account and QOS. It returns those facts, nil if the options stay; what was seen of a node stays true.
func (v visitor) checkSet(ctx context.Context, who access.Caller, site corral.Site,
	in api.SetSite) (*corral.SiteFacts, error) {
	before := site
	if said := request.Set(&site, in); len(said) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, "body", "nothing to change is in it")
	}
	if err := settable(site); err != nil {
		return nil, err
	}
	if _, err := request.Terms(site.SiteTerms); err != nil {
		return nil, err
	}
	if err := request.CheckOptions(site); err != nil || reflect.DeepEqual(before.BatchOptions, site.BatchOptions) {
		return nil, err
	}
	if err := v.visits.May(who, time.Now()); err != nil {
		return nil, err
	}
	// A host key that is new by now is not accepted on the quiet: the site had another when it was created.
	if err := v.reach.CheckSite(ctx, site, false); err != nil {
		return nil, err
	}
	facts, err := v.facts(ctx, site)
	if err != nil || facts == nil {
		return nil, err
	}
	if before.Facts != nil {
		facts.Outbound, facts.Shared, facts.Node = before.Facts.Outbound, before.Facts.Shared, before.Facts.Node
	}
	site.Facts = facts
	return facts, request.CheckQueues(site)
}

// stillAs reports whether the site is still as it was when the change was checked: its options work together or not at
// all. Limits alone need no such check.
func stillAs(tx *store.Tx, checked corral.Site, in api.SetSite) error {
	now, err := tx.Site(checked.ID)
	if err != nil {
		return err
	}
	if err := settable(now); err != nil {
		return err
	}
	after := now
	request.Set(&after, in)
	if err := provision.CheckTerms(tx, now, after); err != nil {
		return err
	}
	in.MaxQueued, in.MaxRunning, in.Price, in.Billing, in.Allocation = nil, nil, nil, nil, nil
	same := reflect.DeepEqual(now.BatchOptions, checked.BatchOptions) && reflect.DeepEqual(now.Facts, checked.Facts)
	if in != (api.SetSite{}) && !same {
		return corral.ErrorAt(corral.Unavailable, "site",
			"somebody else changed or probed %s at this moment: nothing was done, send the request again", now.Name)
	}
	return nil
}

// probe looks at a site for a person and records what was seen, the words in the site's history and the facts with the
// site, where they check what is asked of it from then on.
func (h *siteHandlers) probe(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, in api.NewProbe) (rest.Step[api.Probe], error) {
		var site corral.Site
		var cluster corral.Cluster
		err := h.DB.Request(ctx).View(ctx, func(tx *store.Tx) (err error) {
			if site, err = h.Find(c, tx); err == nil {
				cluster, err = probed(tx, site, in)
			}
			return err
		})
		if err != nil {
			return rest.Step[api.Probe]{}, err
		}
		var p api.Probe
		if err = h.visitor.visits.May(c.Caller(), time.Now()); err == nil {
			p, err = h.visitor.look(ctx, site, cluster)
		}
		if err != nil {
			return rest.Step[api.Probe]{}, visits.Entry(c.Caller(), err)
		}
		return rest.Only(func(tx *store.Tx) (api.Probe, error) {
			for _, said := range p.Words() {
				if err := tx.Log(corral.ObjectSite, int64(site.ID), "probe", said); err != nil {
					return p, err
				}
			}
			// The platform is found by the setup job, which may have ended while the site was looked at.
			now, err := tx.Site(site.ID)
			p.Platform = now.Platform
			return p, err
		})
	})
}

// look finds out what the site is like, and how the cluster's pool would reach workers there unless the cluster is
// none.
func (v visitor) look(ctx context.Context, site corral.Site, cluster corral.Cluster) (p api.Probe, err error) {
	p.Site = site.Name
	if p.Facts, err = v.prober.Survey(ctx, site); err != nil || cluster.ID == 0 {
		return p, err
	}
	network, err := v.prober.ProbeNetwork(ctx, site, cluster)
	p.Network = &network
	return p, err
}

// probed finds the cluster for which the network of a probe is to be measured, none if that was not asked for, and
// refuses what cannot be probed.
func probed(tx *store.Tx, site corral.Site, in api.NewProbe) (cluster corral.Cluster, err error) {
	if !in.Network {
		if in.Cluster != "" {
			return cluster, corral.ErrorAt(corral.Invalid, "cluster", "needs network as well")
		}
		return cluster, settable(site)
	}
	if cluster, err = clusterNamed(tx, cmp.Or(in.Cluster, defaultCluster)); err != nil {
		return cluster, err
	}
	switch {
	case cluster.Kind != corral.Condor:
		err = corral.ErrorAt(corral.Unsatisfiable, "cluster", "cluster %s is %s, which has no firewall to negotiate "+
			"with: its workers connect to corrald", cluster.Name, cluster.Kind)
	case cluster.State != corral.ClusterReady:
		err = corral.ErrorAt(corral.Conflict, "cluster", "cluster %s is %s, not %s",
			cluster.Name, cluster.State, corral.ClusterReady)
	case site.State != corral.SiteReady:
		err = corral.ErrorAt(corral.Conflict, "site", "site %s is %s, not %s", site.Name, site.State, corral.SiteReady)
	}
	return cluster, err
}
