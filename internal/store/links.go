package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/ensemble/record"
)

// ScaleLabel is the label by which a glidein names the cluster whose scale asked for it.
const ScaleLabel = "scale"

// What a row says beside its site and its cluster may point at other objects as well: the glidein that it follows, and
// the labels by which corrald finds what a plan, a scale or an ensemble has asked for. A glidein that carries the
// label of another owner's plan would be counted, charged and let go with that plan; so such a row is refused like one
// at another owner's site.

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

// UnusedSite refuses the removal of a site at which something that goes on asks for pilots without being asked again:
// scales, plans that are PROVISIONED and ensembles that are carried out. The Conflict error names the commands that end
// them. Plans that are READY do not keep a site: they ask for nothing by themselves.
func (t *Tx) UnusedSite(site corral.Site) error {
	uses, err := t.usesOfSite(site.ID)
	if err != nil || len(uses) == 0 {
		return err
	}
	var names, ends []string
	for _, u := range uses {
		names, ends = append(names, u.what), append(ends, "`"+u.end+"`")
	}
	return corral.ErrorAt(corral.Conflict, "site", "%s asks for pilots at %s: end that first with %s, or remove the "+
		"site with --force", strings.Join(names, " and "), site.Name, strings.Join(ends, " and "))
}

// A use is something that asks for pilots at a site, and the command that ends it.
type use struct{ what, end string }

// usesOfSite lists what asks for pilots at a site.
func (t *Tx) usesOfSite(id corral.SiteID) (all []use, err error) {
	scaled, err := t.Scales()
	if err != nil {
		return nil, err
	}
	for _, s := range scaled {
		if slices.Contains(s.SiteIDs, id) {
			all = append(all, use{"the scale of cluster " + s.ClusterName,
				"corral cluster scale " + s.ClusterName + " --off"})
		}
	}
	provisioned, err := t.Provisioned()
	if err != nil {
		return nil, err
	}
	for _, p := range provisioned {
		for _, site := range p.Sites {
			if number := strconv.FormatInt(int64(p.ID), 10); site == id {
				all = append(all, use{"plan " + number, "corral plan release " + number})
			}
		}
	}
	open, err := t.OpenEnsembles()
	for _, e := range open {
		if number := strconv.FormatInt(int64(e.ID), 10); e.Pilots.SiteID == id {
			all = append(all, use{"ensemble " + number, "corral ensemble cancel " + number})
		}
	}
	return all, err
}
