package depot

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// CheckGlidein returns an Unsatisfiable error if the catalog has no package with which workers at the site could join
// the cluster. Of a site or a cluster that is not known well enough yet it says nothing.
func (c *Catalog) CheckGlidein(ctx context.Context, site corral.Site, cluster corral.Cluster) error {
	if cluster.Kind != corral.Condor || site.Platform == (corral.Platform{}) {
		return nil
	}
	var n reconcile.Need
	err := c.db.View(ctx, func(tx *store.Tx) (err error) {
		n, err = NeedOf(tx, site, cluster)
		return err
	})
	if err == nil && n.Unfit != "" {
		return corral.Errorf(corral.Unsatisfiable, "%s", n.Unfit)
	}
	return err
}

// NeedOf chooses the worker package for a cluster of kind condor at a site: the newest that runs there and is not newer
// than the pool. A worker that is newer joins its pool, and no job ever matches it. Without one Unfit says what is
// wrong with each; of a pool whose version is not known yet, both stay empty.
func NeedOf(tx *store.Tx, site corral.Site, cluster corral.Cluster) (reconcile.Need, error) {
	n := reconcile.Need{Cluster: cluster}
	if cluster.Version == "" {
		return n, nil
	}
	all, err := tx.Packages(store.Filter{})
	if err != nil {
		return n, err
	}
	var fit []packages.Package
	var newer []string
	for _, p := range all {
		switch {
		case p.What != htcondor.Worker:
		case packages.CompareVersions(p.Version, cluster.Version) > 0:
			newer = append(newer, fmt.Sprintf("%s is newer than the pool's HTCondor %s", p.Name, cluster.Version))
		default:
			fit = append(fit, signedOf(p).Package)
		}
	}
	p, err := packages.Choose(site.Platform, fit)
	if err == nil {
		n.Package, n.Version, n.Digest = p.Name, p.Version, p.Digest
		return n, nil
	}
	why := append([]string{err.Error()}, newer...)
	if len(fit) == 0 {
		why[0] = fmt.Sprintf("none for %s/%s is in the catalog", site.Platform.OS, site.Platform.Arch)
	}
	n.Unfit = fmt.Sprintf("site %s needs a worker package of HTCondor for cluster %s: %s; "+
		"`corral package build` makes one", site.Name, cluster.Name, strings.Join(why, "; "))
	return n, nil
}
