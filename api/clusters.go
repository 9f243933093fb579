package api

import (
	"context"
	"net/url"
	"time"

	"github.com/corral-pilot/corral"
)

func clusterPath(ref string) string { return "/v1/clusters/" + url.PathEscape(ref) }

// CreateCluster creates a personal cluster. A condor cluster starts after the answer; WaitCluster waits for it. An
// empty key is replaced by a random one.
func (c *Client) CreateCluster(ctx context.Context, n NewCluster, key string) (corral.Cluster, error) {
	return create[corral.Cluster](ctx, c, "/v1/clusters", key, n)
}

// Clusters lists clusters, oldest first.
func (c *Client) Clusters(ctx context.Context, f Filter) ([]corral.Cluster, error) {
	return list[corral.Cluster](ctx, c, "/v1/clusters", f.query())
}

// Cluster returns the cluster with the name or id ref. A DELETED cluster is found only by its id.
func (c *Client) Cluster(ctx context.Context, ref string) (corral.Cluster, error) {
	return get[corral.Cluster](ctx, c, clusterPath(ref), nil)
}

// WaitCluster returns the cluster once it is in one of the states of until, a comma-separated list. If the cluster
// fails instead, the error has kind Failed; after timeout (0: none), kind Timeout. The cluster is returned with such an
// error.
func (c *Client) WaitCluster(ctx context.Context, ref, until string, timeout time.Duration) (corral.Cluster, error) {
	u, err := ParseUntil(until, corral.ClusterStates)
	if err != nil {
		return corral.Cluster{}, err
	}
	return wait(ctx, c, clusterPath(ref), waiting[corral.Cluster]{u, timeout, u.Cluster})
}

// StartCluster starts a condor cluster that is stopped or failed, and restarts a running one. Its queue is kept.
func (c *Client) StartCluster(ctx context.Context, ref string, s StartCluster) (corral.Cluster, error) {
	return create[corral.Cluster](ctx, c, clusterPath(ref)+"/start", "", s)
}

// StopCluster stops the daemons of a condor cluster. Its queue is kept.
func (c *Client) StopCluster(ctx context.Context, ref string) (corral.Cluster, error) {
	return act[corral.Cluster](ctx, c, clusterPath(ref)+"/stop")
}

// ClusterEnv returns the environment that a program needs to use the cluster.
func (c *Client) ClusterEnv(ctx context.Context, ref string) (Env, error) {
	return get[Env](ctx, c, clusterPath(ref)+"/env", nil)
}

// RemoveCluster removes a cluster. An embedded cluster is removed at once; a condor cluster is removed after the
// answer, with its daemons, queue and folder. While glideins or runs use the cluster, removal is a Conflict error that
// names them.
func (c *Client) RemoveCluster(ctx context.Context, ref string) (corral.Cluster, error) {
	return remove[corral.Cluster](ctx, c, clusterPath(ref), nil)
}

// ClusterHistory returns what happened to the cluster, oldest first.
func (c *Client) ClusterHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, clusterPath(ref)+"/history", nil)
}

// Workers lists the workers that are currently registered in the cluster.
func (c *Client) Workers(ctx context.Context, ref string) ([]corral.Worker, error) {
	return list[corral.Worker](ctx, c, clusterPath(ref)+"/workers", nil)
}

// Health returns corrald's report on itself, or an error if it is not ready to serve.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, "/readyz", nil)
}
