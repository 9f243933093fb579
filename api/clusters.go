package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/corral-pilot/corral"
)

func clusterPath(ref string) string { return "/v1/clusters/" + url.PathEscape(ref) }

// CreateCluster creates a personal cluster. An empty key is replaced by a random one.
func (c *Client) CreateCluster(ctx context.Context, n NewCluster, key string) (corral.Cluster, error) {
	return create[corral.Cluster](ctx, c, "/v1/clusters", key, n)
}

// Clusters lists clusters, oldest first.
func (c *Client) Clusters(ctx context.Context, f Filter) ([]corral.Cluster, error) {
	return list[corral.Cluster](ctx, c, "/v1/clusters", f.query())
}

// Cluster returns the cluster with the name or id ref. A DELETED cluster is found by its id only.
func (c *Client) Cluster(ctx context.Context, ref string) (corral.Cluster, error) {
	return get[corral.Cluster](ctx, c, clusterPath(ref), nil)
}

// RemoveCluster removes a cluster. While glideins or runs use it that is a Conflict which names them.
func (c *Client) RemoveCluster(ctx context.Context, ref string) (corral.Cluster, error) {
	return change[corral.Cluster](ctx, c, call{method: http.MethodDelete, path: clusterPath(ref)})
}

// ClusterHistory returns what happened to the cluster, oldest first.
func (c *Client) ClusterHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, clusterPath(ref)+"/history", nil)
}

// Workers lists the workers that are registered in the cluster now.
func (c *Client) Workers(ctx context.Context, ref string) ([]corral.Worker, error) {
	return list[corral.Worker](ctx, c, clusterPath(ref)+"/workers", nil)
}

// Health returns what corrald says of itself, or an error if it is not ready to serve.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, "/readyz", nil)
}
