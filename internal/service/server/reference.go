package server

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
)

// defaultCluster is the cluster of a glidein or a run that names none.
const defaultCluster = "default"

// siteNamed finds a site by its name or id. The name of a DELETED site is free again, so such a site is found only by
// its id.
func siteNamed(tx *store.Tx, ref string) (corral.Site, error) {
	return rest.Referred("site", ref, tx.Site, tx.SiteNamed)
}

// clusterNamed finds a cluster by its name or id.
func clusterNamed(tx *store.Tx, ref string) (corral.Cluster, error) {
	return rest.Referred("cluster", ref, tx.Cluster, tx.ClusterNamed)
}

// ownCluster finds a cluster of an owner.
func ownCluster(tx *store.Tx, owner, ref string) (corral.Cluster, error) {
	cluster, err := clusterNamed(tx, ref)
	if err == nil {
		err = access.MayUse(owner, "cluster", cluster.Name, cluster.Owner)
	}
	return cluster, err
}

// siteFilter and clusterFilter return the id of the object that a query parameter names to narrow a list, or 0 if the
// parameter is absent.
func siteFilter(tx *store.Tx, q *request.Query) (corral.SiteID, error) {
	if !q.Has("site") {
		return 0, nil
	}
	site, err := siteNamed(tx, q.Text("site"))
	return site.ID, err
}

func clusterFilter(tx *store.Tx, q *request.Query) (corral.ClusterID, error) {
	if !q.Has("cluster") {
		return 0, nil
	}
	cluster, err := clusterNamed(tx, q.Text("cluster"))
	return cluster.ID, err
}

// clusterAhead refuses a request for a cluster that does not exist, or that the caller may not use, before its
// workflow is read.
func clusterAhead(a *rest.Adapter) func(*rest.Call, rest.Head) error {
	return func(c *rest.Call, head rest.Head) error {
		ref, given := head["cluster"]
		if !given || ref == "" {
			return nil
		}
		_, err := rest.View(c.Context(), a.DB, func(tx *store.Tx) (corral.Cluster, error) {
			return ownCluster(tx, c.Actor(), ref)
		})
		return err
	}
}
