package store

import (
	"github.com/corral-pilot/corral"
)

var clusters = table[corral.Cluster]{
	noun: ObjectCluster,
	name: "clusters",
	columns: `
	id,
	name,
	owner,
	kind,
	state,
	reason,
	created_at_ms,
	updated_at_ms`,
	fields: func(c *corral.Cluster) []any {
		return []any{
			orNull(&c.ID),
			&c.Name,
			&c.Owner,
			&c.Kind,
			&c.State,
			&c.Reason,
			at(&c.CreatedAt),
			at(&c.UpdatedAt),
		}
	},
	about: func(c corral.Cluster) []Subject {
		return []Subject{{ObjectCluster, int64(c.ID)}}
	},
}

// CreateCluster stores c as READY; its ID, State and times are set here. A Conflict error if a cluster
// that is not DELETED has the name.
func (t *Tx) CreateCluster(c corral.Cluster) (corral.Cluster, error) {
	other, err := t.ClusterNamed(c.Name)
	if err == nil {
		return corral.Cluster{}, corral.Errorf(corral.Conflict, "cluster %q exists already, with id %d", c.Name, other.ID)
	}
	if corral.KindOf(err) != corral.NotFound {
		return corral.Cluster{}, err
	}
	c.ID, c.State, c.Reason, c.CreatedAt, c.UpdatedAt = 0, corral.ClusterReady, "", t.now, t.now
	return clusters.create(t, c, string(c.State))
}

// Cluster returns the cluster with this id, DELETED or not.
func (t *Tx) Cluster(id corral.ClusterID) (corral.Cluster, error) {
	return clusters.one(t, id, "id = ?", id)
}

// ClusterNamed returns the cluster that has the name now; DELETED ones have none.
func (t *Tx) ClusterNamed(name string) (corral.Cluster, error) {
	return clusters.one(t, name, "name = ? and state <> 'DELETED'", name)
}

// Clusters lists clusters.
func (t *Tx) Clusters(f Filter) ([]corral.Cluster, error) {
	var c conditions
	c.filter(f)
	return clusters.list(t, c)
}

// DeleteCluster moves a cluster from READY to DELETED. A Conflict error if it is DELETED already, or
// if a glidein or run that is not over still needs it.
func (t *Tx) DeleteCluster(id corral.ClusterID, reason string) (corral.Cluster, error) {
	c, err := t.readyCluster(id)
	if err != nil {
		return corral.Cluster{}, err
	}
	if err := t.unused(c); err != nil {
		return corral.Cluster{}, err
	}
	c.State, c.Reason, c.UpdatedAt = corral.ClusterDeleted, reason, t.after(c.UpdatedAt)
	if err := clusters.update(t, c); err != nil {
		return corral.Cluster{}, err
	}
	return c, t.record(corral.Entry{Object: ObjectCluster, Of: int64(id), Event: "delete",
		From: string(corral.ClusterReady), To: string(c.State), Reason: reason})
}

// unused returns a Conflict error that counts what still needs the cluster.
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
		return corral.Errorf(corral.Conflict, "cluster %s is needed by %d glideins and %d runs", c.Name, live, running)
	}
	return nil
}

// readyCluster returns a cluster that workers and runs may still be given to.
func (t *Tx) readyCluster(id corral.ClusterID) (corral.Cluster, error) {
	c, err := t.Cluster(id)
	if err != nil {
		return corral.Cluster{}, err
	}
	if c.State != corral.ClusterReady {
		return corral.Cluster{}, corral.Errorf(corral.Conflict, "cluster %s is %s", c.Name, c.State)
	}
	return c, nil
}
