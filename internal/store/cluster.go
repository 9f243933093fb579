package store

import (
	"github.com/corral-pilot/corral"
)

// Each cluster of kind condor has a pool, which internal/condor/condorpool starts and stops according to its row. An
// embedded cluster consists of its row alone.
var clusters = table[corral.Cluster]{
	noun:  corral.ObjectCluster,
	name:  "clusters",
	owner: "owner",
	columns: func(c *corral.Cluster) []column {
		return []column{
			{"id", orNull(&c.ID)},
			{"name", &c.Name},
			{"owner", &c.Owner},
			{"kind", &c.Kind},
			{"attached", &c.Attached},
			{"collector", &c.Collector},
			{"schedd", &c.Schedd},
			{"schedd_address", &c.ScheddAt},
			{"htcondor", &c.HTCondor},
			{"version", &c.Version},
			{"state", &c.State},
			{"reason", &c.Reason},
			{"created_at_ms", at(&c.CreatedAt)},
			{"updated_at_ms", at(&c.UpdatedAt)},
		}
	},
	about: func(c corral.Cluster) []Subject {
		return []Subject{{corral.ObjectCluster, int64(c.ID)}}
	},
}

// FreeClusterName returns a Conflict error if a cluster of the owner that is not DELETED has the name.
func (t *Tx) FreeClusterName(owner, name string) error {
	return clusters.free(t, func(other corral.Cluster) error {
		return corral.Errorf(corral.Conflict, "cluster %q exists already, with id %d", name, other.ID)
	}, "owner = ? and name = ? and state <> 'DELETED'", owner, name)
}

// CreateCluster stores c and sets its ID, State and times: an embedded cluster becomes READY, any other STARTING. It
// returns a Conflict error if c's name is not free.
func (t *Tx) CreateCluster(c corral.Cluster) (corral.Cluster, error) {
	if err := t.FreeClusterName(c.Owner, c.Name); err != nil {
		return corral.Cluster{}, err
	}
	c.ID, c.State, c.Reason, c.CreatedAt, c.UpdatedAt = 0, corral.ClusterStarting, "", t.now, t.now
	if c.Kind == corral.Embedded {
		c.State = corral.ClusterReady
	}
	return clusters.create(t, c, string(c.State))
}

// Cluster returns the cluster with this id, DELETED or not.
func (t *Tx) Cluster(id corral.ClusterID) (corral.Cluster, error) {
	return clusters.one(t, id, "id = ?", id)
}

// ClusterNamed returns the cluster that currently has the name, chosen as the function named describes. DELETED
// clusters do not keep their names.
func (t *Tx) ClusterNamed(name string) (corral.Cluster, error) {
	return named(t, clusters, name, func(c corral.Cluster) string { return c.Owner })
}

// Clusters lists clusters.
func (t *Tx) Clusters(f Filter) ([]corral.Cluster, error) {
	return clusters.filtered(t, f)
}

// MoveCluster applies move to a cluster. It returns a Conflict error for a removal while a live glidein or run still
// needs the cluster.
func (t *Tx) MoveCluster(id corral.ClusterID, move corral.ClusterMove, reason string) (corral.Cluster, error) {
	return clusters.move(t, id, func(c corral.Cluster) (corral.Cluster, []corral.Entry, error) {
		c, entries, err := c.Apply(move, reason, t.now)
		if err == nil && move == corral.ClusterRemove {
			err = t.unused(c)
		}
		return c, entries, err
	})
}

// RemoveCluster requests the removal of a cluster. An embedded cluster leaves nothing to clean up and becomes DELETED
// at once.
func (t *Tx) RemoveCluster(id corral.ClusterID, reason string) (corral.Cluster, error) {
	c, err := t.MoveCluster(id, corral.ClusterRemove, reason)
	if err != nil || c.Kind != corral.Embedded {
		return c, err
	}
	return t.MoveCluster(id, corral.ClusterRemoved, reason)
}

// SetCluster lets fn set facts about a cluster: its collector, its HTCondor package and version, and the reason for
// its state. If fn changes anything else, that is a defect, and nothing is stored.
func (t *Tx) SetCluster(id corral.ClusterID, fn func(*corral.Cluster)) (corral.Cluster, error) {
	return clusters.setFacts(t, id, fn, clusterWithoutFacts, func(c *corral.Cluster) {
		c.UpdatedAt = t.after(c.UpdatedAt)
	})
}

// clusterWithoutFacts returns c without the fields that SetCluster may change.
func clusterWithoutFacts(c corral.Cluster) corral.Cluster {
	c.Collector, c.Schedd, c.ScheddAt, c.HTCondor, c.Version, c.Reason = "", "", "", "", "", ""
	return c
}

// unused returns a Conflict error with the numbers of glideins and runs that still need the cluster, or nil if none do.
// It is called in the transaction that removes the cluster, and internal/work/admit checks the cluster's state in the
// transaction that creates a glidein or a run: so no new glidein or run can depend on a cluster that is being removed.
func (t *Tx) unused(c corral.Cluster) error {
	var live, running int
	err := t.row(`
		select
			(select count(*) from glideins where cluster_id = ?1 and `+liveGlidein+`),
			(select count(*) from runs where cluster_id = ?1 and `+liveRun+`)`,
		[]any{c.ID}, &live, &running)
	if err != nil {
		return err
	}
	if live+running > 0 {
		return corral.Errorf(corral.Conflict,
			"cluster %s is needed by %d glideins and %d runs: remove and cancel them first", c.Name, live, running)
	}
	return nil
}
