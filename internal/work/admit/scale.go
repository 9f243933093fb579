package admit

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// A NewScale is a request to scale a cluster with workers at some sites. The caller has read the rows of all of them.
type NewScale struct {
	Terms   corral.Scale // Cluster, Sites and SiteIDs are set by Scale
	Cluster corral.Cluster
	Sites   []corral.Site
	Machine corral.SiteQueue                          // as in GlideinRequest
	Worker  func(corral.Scale, string) api.NewGlidein // returns the request for a worker at the named site
}

// Scale creates the scale of a cluster that has no other controller.
func Scale(tx *store.Tx, n NewScale) (corral.Scale, error) {
	s := n.Terms
	s.Cluster, s.Sites, s.SiteIDs = n.Cluster.ID, nil, nil
	for _, site := range n.Sites {
		s.Sites, s.SiteIDs = append(s.Sites, site.Name), append(s.SiteIDs, site.ID)
	}
	return admitted(tx, claim{
		owner: s.Owner,
		usable: func() error {
			err := access.MayUse(s.Owner, "cluster", n.Cluster.Name, n.Cluster.Owner)
			for _, site := range n.Sites {
				if err == nil {
					err = access.MayUse(s.Owner, "sites", site.Name, site.Owner)
				}
			}
			return err
		},
		possible: func() error {
			if err := n.somewhere(tx, s); err != nil {
				return err
			}
			return scalable(tx, n.Cluster)
		},
	}, func() (corral.Scale, error) { return tx.CreateScale(s) })
}

// scalable returns a Conflict error if a cluster cannot be scaled now.
func scalable(tx *store.Tx, cluster corral.Cluster) error {
	if err := withoutEnsemble(tx, cluster.ID); err != nil {
		return err
	}
	planned, err := planOf(tx, cluster.ID)
	if err != nil {
		return err
	}
	if planned != 0 {
		return corral.ErrorAt(corral.Conflict, "cluster",
			"plan %d requests workers of %s until its run is over; `corral plan release %[1]d` ends that", planned,
			cluster.Name)
	}
	if err := cluster.Takes(); err != nil {
		return err
	}
	_, err = tx.Scale(cluster.ID)
	switch {
	case corral.KindOf(err) == corral.NotFound:
		return nil
	case err != nil:
		return err
	}
	return corral.ErrorAt(corral.Conflict, "cluster", "%s is already scaled; "+
		"`corral cluster scale %[1]s --off` ends that", cluster.Name)
}

// somewhere returns an error if none of the sites can provide the workers of a scale, regardless of the waiting tasks.
func (n NewScale) somewhere(tx *store.Tx, s corral.Scale) error {
	var reasons []error
	for _, site := range n.Sites {
		p := GlideinRequest{Request: n.Worker(s, site.Name), Site: site, Cluster: n.Cluster, Machine: n.Machine}
		_, err := Place(p, tx.Now())
		if err == nil {
			return nil
		}
		reasons = append(reasons, err)
	}
	if len(reasons) == 1 {
		return reasons[0]
	}
	var said []string
	for i, err := range reasons {
		said = append(said, fmt.Sprintf("%s: %v", n.Sites[i].Name, err))
	}
	return corral.ErrorAt(corral.Unsatisfiable, "sites", "none can provide such workers: %s", strings.Join(said, "; "))
}
