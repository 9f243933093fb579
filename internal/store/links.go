package store

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/ensemble/record"
)

// ScaleLabel is the label by which a glidein names the cluster whose scale asked for it.
const ScaleLabel = "scale"

// usableLinks refuses a glidein that follows, or is labelled with, what is not its owner's: it would be let go, and
// charged, with that.
func (t *Tx) usableLinks(g corral.Glidein) error {
	if g.Follows != 0 {
		before, err := t.GlideinInBrief(g.Follows)
		if err == nil {
			err = MayUse(g.Owner, "follows_id", "glidein "+strconv.FormatInt(int64(before.ID), 10), before.Owner)
		}
		if err != nil {
			return err
		}
	}
	return t.checkLabels(g.Owner, g.Cluster, g.Labels)
}

// checkLabels refuses labels of a new glidein or run that name a plan, an ensemble or a scale of another owner. A label
// that is not the number of anything names nothing.
func (t *Tx) checkLabels(owner string, cluster corral.ClusterID, labels map[string]string) error {
	for label, ownerOf := range map[string]func(int64) (string, error){
		corral.PlanLabel: func(id int64) (string, error) {
			p, err := t.PlanRow(corral.PlanID(id))
			return p.Owner, err
		},
		record.Label: func(id int64) (string, error) {
			e, err := t.Ensemble(record.ID(id))
			return e.Owner, err
		},
		ScaleLabel: func(id int64) (string, error) {
			c, err := t.Cluster(corral.ClusterID(id))
			return c.Owner, err
		},
	} {
		id, err := strconv.ParseInt(labels[label], 10, 64)
		if err != nil || id <= 0 {
			continue
		}
		of, err := ownerOf(id)
		if err == nil {
			err = MayUse(owner, "labels."+label, label+" "+labels[label], of)
		}
		if err != nil {
			return corral.ErrorAt(corral.KindOf(err), "labels."+label, "%w", err)
		}
	}
	return nil
}

// A Use is something that will ask for pilots at a site without being asked again.
type Use struct {
	What string // such as "the scale of cluster default"
	End  string // the command that ends it
}

// UsesOfSite lists what goes on that names a site: scales, plans that are PROVISIONED and ensembles that are carried
// out. Plans that are READY are not among them: they ask for nothing by themselves.
func (t *Tx) UsesOfSite(id corral.SiteID) (all []Use, err error) {
	scaled, err := t.Scales()
	if err != nil {
		return nil, err
	}
	for _, s := range scaled {
		for _, site := range s.SiteIDs {
			if site == id {
				all = append(all, Use{"the scale of cluster " + s.ClusterName,
					"corral cluster scale " + s.ClusterName + " --off"})
			}
		}
	}
	provisioned, err := t.Provisioned()
	if err != nil {
		return nil, err
	}
	for _, p := range provisioned {
		for _, site := range p.Sites {
			if number := strconv.FormatInt(int64(p.ID), 10); site == id {
				all = append(all, Use{"plan " + number, "corral plan release " + number})
			}
		}
	}
	open, err := t.OpenEnsembles()
	for _, e := range open {
		if number := strconv.FormatInt(int64(e.ID), 10); e.Pilots.SiteID == id {
			all = append(all, Use{"ensemble " + number, "corral ensemble cancel " + number})
		}
	}
	return all, err
}
