package admit

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A GlideinRequest is a request for a glidein that runs at a site and joins a cluster. The caller has read the rows of
// both; the names in Request are used only in messages.
type GlideinRequest struct {
	Request api.NewGlidein
	Owner   string
	Site    corral.Site
	Cluster corral.Cluster
	Machine corral.SiteQueue // this machine, described as a queue of the batch system fork
	Labels  []string         // reserved labels that the request may have: none if a user made it
	Follows Following
	Speed   corral.Speed // of the site's hosts, for estimates of the plan that requests the glidein
}

// A Following makes a glidein follow another one. The zero value means that it follows none.
type Following struct {
	Glidein corral.GlideinID
	After   corral.Seconds // the glidein is due this long after the start of the other one
	Wait    corral.Seconds // expected wait in the queue
}

// Glidein creates a glidein.
func Glidein(tx *store.Tx, p GlideinRequest) (corral.Glidein, error) {
	g := corral.Glidein{Owner: p.Owner, Follows: p.Follows.Glidein, Labels: p.Request.Labels}
	c := ofGlidein(tx, g, p.Site, p.Cluster)
	c.possible = func() (err error) {
		if g, err = Place(p, tx.Now()); err == nil {
			err = request.CheckLabels(g.Labels, p.Labels...)
		}
		if err == nil && !slices.Contains(p.Labels, corral.PlanLabel) { // of a plan: see Reserve
			err = affordable(tx, p.Site, g)
		}
		return err
	}
	return admitted(tx, c, func() (corral.Glidein, error) { return tx.CreateGlidein(g) })
}

// Adopt creates the glidein of a pilot that runs at its site although corrald has no record of it. It does not check
// whether the site can provide the pilot, because the pilot is already running.
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

// ofGlidein returns the claim of a glidein, without checking whether its site can provide it.
func ofGlidein(tx *store.Tx, g corral.Glidein, site corral.Site, cluster corral.Cluster) claim {
	return claim{owner: g.Owner, quotas: []string{"glideins"}, usable: func() error {
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

// Place returns the glidein that Glidein would create, or the error if the site or the cluster cannot provide it. It
// changes nothing; package scaling uses it to choose sites.
func Place(p GlideinRequest, now time.Time) (corral.Glidein, error) {
	g, err := request.Glidein(p.Request, now)
	g.Owner, g.Speed = p.Owner, p.Speed
	g.Follows, g.FollowsAfter, g.FollowsWait = p.Follows.Glidein, p.Follows.After, p.Follows.Wait
	if err == nil {
		err = request.Place(&g, p.Site, p.Cluster, p.Machine)
	}
	return g, err
}
