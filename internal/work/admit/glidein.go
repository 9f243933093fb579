package admit

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A Pilot is a glidein that is asked for at a site, to join a cluster. Site and Cluster are rows that the caller has
// found; in Request their names are for messages.
type Pilot struct {
	Request api.NewGlidein
	Owner   string
	Site    corral.Site
	Cluster corral.Cluster
	Machine corral.SiteQueue // this machine, as the queue that the batch system fork has here
	Labels  []string         // of corrald's own, that the request may bear; a person's may bear none
	Follows Following
}

// A Following says after which glidein another one comes, and when. The zero value is after none.
type Following struct {
	Glidein corral.GlideinID
	After   corral.Seconds // since the other one runs
	Wait    corral.Seconds // that it is expected to wait in its queue
}

// Glidein creates a glidein.
func Glidein(tx *store.Tx, p Pilot) (corral.Glidein, error) {
	g, err := request.Glidein(p.Request, tx.Now())
	if err != nil {
		return g, err
	}
	g.Owner = p.Owner
	g.Follows, g.FollowsAfter, g.FollowsWait = p.Follows.Glidein, p.Follows.After, p.Follows.Wait
	c := ofGlidein(tx, g, p.Site, p.Cluster)
	c.gives = func() error {
		if err := request.CheckLabels(g.Labels, p.Labels...); err != nil {
			return err
		}
		return request.Place(&g, p.Site, p.Cluster, p.Machine)
	}
	return admitted(tx, c, func() (corral.Glidein, error) { return tx.CreateGlidein(g) })
}

// Adopt creates the glidein of a pilot that the site has already, though corrald has no record of it. So whether the
// site can give it is not asked.
func Adopt(tx *store.Tx, g corral.Glidein) (corral.Glidein, error) {
	site, err := tx.Site(g.Site)
	if err != nil {
		return g, err
	}
	cluster, err := tx.Cluster(g.Cluster)
	if err != nil {
		return g, err
	}
	return admitted(tx, ofGlidein(tx, g, site, cluster), func() (corral.Glidein, error) { return tx.CreateGlidein(g) })
}

// ofGlidein is the claim of a glidein, but for whether the site can give it.
func ofGlidein(tx *store.Tx, g corral.Glidein, site corral.Site, cluster corral.Cluster) claim {
	return claim{owner: g.Owner, quotas: []string{"glideins"}, uses: func() error {
		err := access.MayUse(g.Owner, "site", site.Name, site.Owner)
		if err == nil {
			err = access.MayUse(g.Owner, "cluster", cluster.Name, cluster.Owner)
		}
		if err == nil {
			err = mayFollow(tx, g)
		}
		if err == nil {
			err = mayBear(tx, g.Owner, g.Labels)
		}
		return err
	}}
}

// Place returns the glidein that a request would become at a site, with what the site and the cluster fill in, or why
// they cannot give it. It is for those who look before they ask; Glidein asks again.
func Place(p Pilot, now time.Time) (corral.Glidein, error) {
	g, err := request.Glidein(p.Request, now)
	if err == nil {
		err = request.Place(&g, p.Site, p.Cluster, p.Machine)
	}
	return g, err
}
