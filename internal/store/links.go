package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// ScaleLabel is the label by which a glidein names the cluster whose scale requested it.
const ScaleLabel = "scale"

// UnusedSite returns a Conflict error, which refuses the removal of a site, if pilots are still requested there
// automatically: by a scale, a PROVISIONED plan or a RUNNING ensemble. The error names the commands that end these.
// READY plans do not prevent the removal, because they request nothing by themselves.
func (t *Tx) UnusedSite(site corral.Site) error {
	uses, err := t.usesOfSite(site.ID)
	if err != nil || len(uses) == 0 {
		return err
	}
	var names, ends []string
	for _, u := range uses {
		names, ends = append(names, u.what), append(ends, "`"+u.end+"`")
	}
	verb, what := "asks", "that"
	if len(uses) > 1 {
		verb, what = "ask", "them"
	}
	return corral.ErrorAt(corral.Conflict, "site", "%s %s for pilots at %s: end %s first with %s, or remove the site "+
		"with --force", strings.Join(names, " and "), verb, site.Name, what, strings.Join(ends, " and "))
}

// asksAt reports whether a plan requests pilots at a site: its document contains a pilot there or names the site.
func (t *Tx) asksAt(p corral.Plan, id corral.SiteID) (yes bool, err error) {
	for name, site := range p.Sites {
		if site != id {
			continue
		}
		err = t.row(`
			select
				exists (select 1 from json_each(document, '$.pilots') as pilot where pilot.value ->> '$.site' = ?2)
				or exists (select 1 from json_each(document, '$.asked.sites') as site where site.value = ?2)
			from plans
			where id = ?1`, []any{p.ID, name}, &yes)
		if err != nil {
			return false, fmt.Errorf("reading where plan %d requests pilots: %w", p.ID, err)
		}
	}
	return yes, nil
}

// A use is an object that requests pilots at a site, and the command that ends it.
type use struct{ what, end string }

// usesOfSite lists the objects that request pilots at a site.
func (t *Tx) usesOfSite(id corral.SiteID) (all []use, err error) {
	scaled, err := t.Scales()
	if err != nil {
		return nil, err
	}
	for _, s := range scaled {
		if slices.Contains(s.SiteIDs, id) {
			ref := s.ClusterName
			if s.Owner != t.asker { // the caller may have a cluster of the same name
				ref = strconv.FormatInt(int64(s.Cluster), 10)
			}
			all = append(all, use{"the scale of cluster " + s.ClusterName, "corral cluster scale " + ref + " --off"})
		}
	}
	provisioned, err := t.Provisioned()
	if err != nil {
		return nil, err
	}
	for _, p := range provisioned {
		asks, err := t.asksAt(p, id)
		if err != nil {
			return nil, err
		}
		if number := strconv.FormatInt(int64(p.ID), 10); asks {
			all = append(all, use{"plan " + number, "corral plan release " + number})
		}
	}
	open, err := t.OpenEnsembles()
	for _, e := range open {
		if number := strconv.FormatInt(int64(e.ID), 10); e.Pilots.SiteID == id && e.State == record.Running {
			all = append(all, use{"ensemble " + number, "corral ensemble cancel " + number})
		}
	}
	return all, err
}
