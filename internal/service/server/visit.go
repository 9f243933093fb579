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
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A visitor connects to sites for requests that need information from them first: before a site is created, before
// its options change, and for a probe. All operations that may take minutes or need a person are here; no transaction
// is open during them.
type visitor struct {
	reach  *siteaccess.Reach
	prober Prober
	visits *visitKeeper
}

// create creates a site. corrald connects to the site before there is a row, so that an unusable contact, root or
// option is reported to the caller and leaves nothing behind. Before that, it checks in the store whether name and
// root are free, because a connection may require the person to type a password. The transaction checks both once more.
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
			return rest.Step[corral.Site]{}, visitEntry(c.Caller(), err)
		}
		return rest.Only(func(tx *store.Tx) (corral.Site, error) { return admit.Site(tx, site) })
	})
}

// visited returns the site with its root expanded there, and with the facts of its batch system, so that even the first
// glidein is checked against them. It returns an error with the reason if the site cannot be used.
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

// facts returns the facts of a site's batch system, or nil if it cannot be queried; in that case nothing is refused
// because of missing facts.
func (v visitor) facts(ctx context.Context, site corral.Site) (*corral.SiteFacts, error) {
	facts, err := v.reach.Facts(ctx, site)
	if err != nil || facts.At.IsZero() {
		return nil, err
	}
	return &facts, nil
}

// checkSet checks a change of a site. If options change, it queries the site with the new ones, because the user's
// limits depend on account and QOS. It returns the facts from that query, or nil if the options stay the same; earlier
// observations of a node remain valid.
func (v visitor) checkSet(ctx context.Context, who access.Caller, site corral.Site,
	in api.SetSite) (*corral.SiteFacts, error) {
	before := site
	if said := request.Set(&site, in); len(said) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, "body", "it contains nothing to change")
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
	// A changed host key is not accepted silently: the site had another one when it was created.
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

// stillAs returns an error unless the site is unchanged since the change was checked, because its options are valid
// only together. Limits alone need no such check.
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
			"%s was changed or probed at the same time: nothing was done, send the request again", now.Name)
	}
	return nil
}

// probe examines a site for a person and records the result: a summary in the site's history, and the facts with the
// site, where later requests are checked against them.
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
			return rest.Step[api.Probe]{}, visitEntry(c.Caller(), err)
		}
		return rest.Only(func(tx *store.Tx) (api.Probe, error) {
			for _, said := range p.Words() {
				if err := tx.Log(corral.ObjectSite, int64(site.ID), "probe", said); err != nil {
					return p, err
				}
			}
			// The platform is determined by the setup job, which may have ended during the probe.
			now, err := tx.Site(site.ID)
			p.Platform = now.Platform
			return p, err
		})
	})
}

// look determines the properties of the site and, unless cluster is the zero value, how the cluster's pool would
// reach workers there.
func (v visitor) look(ctx context.Context, site corral.Site, cluster corral.Cluster) (p api.Probe, err error) {
	p.Site = site.Name
	if p.Facts, err = v.prober.Survey(ctx, site); err != nil || cluster.ID == 0 {
		return p, err
	}
	network, err := v.prober.ProbeNetwork(ctx, site, cluster)
	p.Network = &network
	return p, err
}

// probed finds the cluster for which the network is to be measured, or returns the zero value if that was not
// requested. It refuses sites and clusters that cannot be probed.
func probed(tx *store.Tx, site corral.Site, in api.NewProbe) (cluster corral.Cluster, err error) {
	if !in.Network {
		if in.Cluster != "" {
			return cluster, corral.ErrorAt(corral.Invalid, "cluster", "requires network as well")
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
