package store

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A probe is a short job that examines a site and belongs to no glidein. Its tag is recorded before the job is
// submitted and deleted when nothing is left of the job: after a crash the tags show which jobs to look for.

// AddProbe records that a job with this tag is about to examine a site. It returns a Conflict error unless the site
// is READY.
func (t *Tx) AddProbe(site corral.SiteID, tag string) error {
	s, err := t.Site(site)
	if err != nil {
		return err
	}
	if s.State != corral.SiteReady {
		return corral.Errorf(corral.Conflict, "site %s is %s, not %s", s.Name, s.State, corral.SiteReady)
	}
	_, err = t.exec("insert into probes (tag, site_id) values (?, ?)", tag, site)
	return wrap.Errorf(err, "noting a probe")
}

// Probes lists the tags of the probes at a site that may still exist there.
func (t *Tx) Probes(site corral.SiteID) ([]string, error) {
	const query = "select tag from probes where site_id = ? order by tag"
	return collect(t, query, []any{site}, func(tag *string) []any { return []any{tag} })
}

// RemoveProbe records that nothing is left of a probe.
func (t *Tx) RemoveProbe(tag string) error {
	_, err := t.exec("delete from probes where tag = ?", tag)
	return err
}
