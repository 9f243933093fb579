package admit

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A row refers to objects other than its site and its cluster: a glidein may follow another one, and labels link
// glideins and runs to the plan, scale or ensemble that requested them. A glidein with the label of another owner's
// plan would be counted, charged and released with that plan. So links are checked like sites.

// mayFollow refuses a glidein that follows another owner's glidein: it would be charged and released with that glidein.
func mayFollow(tx *store.Tx, g corral.Glidein) error {
	if g.Follows == 0 {
		return nil
	}
	before, err := tx.GlideinInBrief(g.Follows)
	if err == nil {
		err = access.MayUse(g.Owner, "follows_id", "glidein "+strconv.FormatInt(int64(before.ID), 10), before.Owner)
	}
	return err
}

// mayBear refuses labels of a new glidein or run that name another owner's plan, ensemble or scale. A label that is not
// a positive number is ignored.
func mayBear(tx *store.Tx, owner string, labels map[string]string) error {
	for _, l := range []struct {
		label   string
		ownerOf func(int64) (string, error)
	}{
		{corral.PlanLabel, func(id int64) (string, error) {
			p, err := tx.PlanRow(corral.PlanID(id))
			return p.Owner, err
		}},
		{record.Label, func(id int64) (string, error) {
			e, err := tx.Ensemble(record.ID(id))
			return e.Owner, err
		}},
		{store.ScaleLabel, func(id int64) (string, error) {
			c, err := tx.Cluster(corral.ClusterID(id))
			return c.Owner, err
		}},
	} {
		id, err := strconv.ParseInt(labels[l.label], 10, 64)
		if err != nil || id <= 0 {
			continue
		}
		of, err := l.ownerOf(id)
		if err == nil {
			err = access.MayUse(owner, "labels."+l.label, l.label+" "+labels[l.label], of)
		}
		if err != nil {
			return corral.ErrorAt(corral.KindOf(err), "labels."+l.label, "%w", err)
		}
	}
	return nil
}

// mayUseCluster returns the cluster that an owner's row names, or an error if the owner may not use it.
func mayUseCluster(tx *store.Tx, owner string, id corral.ClusterID) (corral.Cluster, error) {
	c, err := tx.Cluster(id)
	if err == nil {
		err = access.MayUse(owner, "cluster", c.Name, c.Owner)
	}
	return c, err
}

// mayUseSite refuses a site that the owner of a row may not use.
func mayUseSite(tx *store.Tx, owner string, id corral.SiteID) error {
	s, err := tx.Site(id)
	if err == nil {
		err = access.MayUse(owner, "site", s.Name, s.Owner)
	}
	return err
}
