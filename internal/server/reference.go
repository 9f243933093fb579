package server

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/request"
	"github.com/corral-pilot/corral/internal/rest"
	"github.com/corral-pilot/corral/internal/store"
)

// defaultCluster is where a glidein or a run goes that names no cluster.
const defaultCluster = "default"

// referred finds the object that a reference names: by id if it is a number, else by name. An object that is not there
// is missing at the place where the request has the reference.
func referred[ID ~int64, T any](place, ref string,
	byID func(ID) (T, error), byName func(string) (T, error)) (T, error) {
	if !request.IsID(ref) {
		v, err := byName(ref)
		return v, rest.Missing(place, err)
	}
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil { // it is larger than any id
		var none T
		return none, corral.ErrorAt(corral.NotFound, place, "%s is not an id", ref)
	}
	v, err := byID(ID(id))
	return v, rest.Missing(place, err)
}

// siteNamed finds a site by its name or id. The name of a DELETED site is free again, so only its id finds it.
func siteNamed(tx *store.Tx, ref string) (corral.Site, error) {
	return referred("site", ref, tx.Site, tx.SiteNamed)
}

// clusterNamed finds a cluster by its name or id.
func clusterNamed(tx *store.Tx, ref string) (corral.Cluster, error) {
	return referred("cluster", ref, tx.Cluster, tx.ClusterNamed)
}

// siteFilter and clusterFilter read the parameter by which a list is narrowed; 0: it is absent.
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

// numbered finds the object whose id is in the path.
func numbered[ID ~int64, T any](c *rest.Call, byID func(ID) (T, error)) (v T, err error) {
	id, err := idParam[ID](c)
	if err != nil {
		return v, err
	}
	v, err = byID(id)
	return v, rest.Missing("id", err)
}

// idParam reads the number that names an object in the path.
func idParam[ID ~int64](c *rest.Call) (ID, error) {
	n, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.NotFound, "id", "%q is not an id", c.Param("id"))
	}
	return ID(n), nil
}
