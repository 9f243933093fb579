package store

import (
	"database/sql"
	"fmt"

	"github.com/corral-pilot/corral"
)

// A probe is a short job that looks at a site and belongs to no glidein. Its tag is noted before the site is told, and
// forgotten when nothing of the job is left: after a crash the tags say what to look for.

// AddProbe notes that a job under this tag is about to look at a site. A Conflict error unless the site is READY.
func (t *Tx) AddProbe(site corral.SiteID, tag string) error {
	s, err := t.Site(site)
	if err != nil {
		return err
	}
	if s.State != corral.SiteReady {
		return corral.Errorf(corral.Conflict, "site %s is %s, not %s", s.Name, s.State, corral.SiteReady)
	}
	if _, err := t.exec("insert into probes (tag, site_id) values (?, ?)", tag, site); err != nil {
		return fmt.Errorf("noting a probe: %w", err)
	}
	return nil
}

// Probes lists the tags of the jobs that look, or looked, at a site and may be there still.
func (t *Tx) Probes(site corral.SiteID) ([]string, error) {
	var tags []string
	err := t.rows("select tag from probes where site_id = ? order by tag", []any{site}, func(rows *sql.Rows) error {
		var tag string
		err := rows.Scan(&tag)
		tags = append(tags, tag)
		return err
	})
	return tags, err
}

// RemoveProbe notes that nothing of the job is left.
func (t *Tx) RemoveProbe(tag string) error {
	_, err := t.exec("delete from probes where tag = ?", tag)
	return err
}
