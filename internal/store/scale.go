package store

import (
	"github.com/corral-pilot/corral"
)

// A cluster's scale is part of the cluster: it shares the cluster's id and history.
var scales = table[corral.Scale]{
	noun:  "scale",
	name:  "scales",
	owner: "owner",
	columns: func(s *corral.Scale) []column {
		return []column{
			{"id", &s.Cluster},
			{"owner", &s.Owner},
			{"sites", asJSON(&s.SiteIDs)},
			{"min_cpus", &s.Min},
			{"max_cpus", &s.Max},
			{"cpus", &s.CPUs},
			{"walltime_ms", ms(&s.Walltime)},
			{"idle_ms", ms(&s.Idle)},
			{"report", &s.Report},
			{"created_at_ms", at(&s.CreatedAt)},
			{"updated_at_ms", at(&s.UpdatedAt)},
			{"(select name from clusters where clusters.id = scales.id)", &s.ClusterName},
			{`(select json_group_array(sites.name order by named.key)
				from json_each(scales.sites) as named
				join sites on sites.id = named.value)`, asJSON(&s.Sites)},
		}
	},
	about: func(s corral.Scale) []Subject { return []Subject{{corral.ObjectCluster, int64(s.Cluster)}} },
}

// CreateScale begins to scale a cluster that has no scale yet, with workers at the sites listed in SiteIDs.
func (t *Tx) CreateScale(s corral.Scale) (corral.Scale, error) {
	s.CreatedAt, s.UpdatedAt = t.now, t.now
	if _, err := scales.insert(t, s); err != nil {
		return corral.Scale{}, err
	}
	if err := t.Log(corral.ObjectCluster, int64(s.Cluster), "scale", s.Terms()); err != nil {
		return corral.Scale{}, err
	}
	t.touch(scales.about(s))
	return t.Scale(s.Cluster)
}

// Scale returns a cluster's scale, or a NotFound error.
func (t *Tx) Scale(cluster corral.ClusterID) (corral.Scale, error) {
	s, err := scales.one(t, cluster, "id = ?", cluster)
	if corral.KindOf(err) == corral.NotFound {
		err = corral.ErrorAt(corral.NotFound, "cluster", "it is not scaled")
	}
	return s, err
}

// Scales lists all clusters that are scaled.
func (t *Tx) Scales() ([]corral.Scale, error) { return scales.list(t, conditions{}) }

// ReportScale stores the result of a check of a cluster's scale if it differs from the last one.
func (t *Tx) ReportScale(cluster corral.ClusterID, report string) error {
	s, err := t.Scale(cluster)
	if err != nil || s.Report == report {
		return err
	}
	s.Report, s.UpdatedAt = report, latest(t.now, s.UpdatedAt)
	return scales.update(t, s)
}

// EndScale deletes a cluster's scale, if there is one, and logs the reason.
func (t *Tx) EndScale(s corral.Scale, reason string) error {
	if _, err := t.exec("delete from scales where id = ?", s.Cluster); err != nil {
		return err
	}
	t.touch(scales.about(s))
	return t.Log(corral.ObjectCluster, int64(s.Cluster), "scale off", reason)
}
