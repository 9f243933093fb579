package api

import (
	"context"
	"net/http"

	"github.com/corral-pilot/corral"
)

// NewScale makes corrald match a cluster's workers to its queue.
type NewScale struct {
	Sites    []string       `json:"sites"`              // names or ids, in the order in which they are used
	Min      int            `json:"min_cpus,omitempty"` // kept even when no task waits
	Max      int            `json:"max_cpus"`           // upper bound
	CPUs     int            `json:"cpus"`               // per worker
	Walltime corral.Seconds `json:"walltime_s"`         // per worker
	Idle     corral.Seconds `json:"idle_s,omitempty"`   // time after which an idle surplus worker leaves; 0: a minute
}

func scalePath(cluster string) string { return clusterPath(cluster) + "/scale" }

// ScaleCluster begins to scale a cluster, given by name or id. It returns a Conflict error if the cluster is already
// scaled, or if a plan is provisioned there (corral run --auto, corral plan apply) and the plan's run is not over.
func (c *Client) ScaleCluster(ctx context.Context, cluster string, s NewScale) (corral.Scale, error) {
	return send[corral.Scale](ctx, c, call{method: http.MethodPut, path: scalePath(cluster)}, s)
}

// ClusterScale returns a cluster's scale with the latest report, or a NotFound error if the cluster is not scaled.
func (c *Client) ClusterScale(ctx context.Context, cluster string) (corral.Scale, error) {
	return get[corral.Scale](ctx, c, scalePath(cluster), nil)
}

// UnscaleCluster stops scaling a cluster and releases its pilots, whose workers finish their tasks. It returns the
// removed scale.
func (c *Client) UnscaleCluster(ctx context.Context, cluster string) (corral.Scale, error) {
	return remove[corral.Scale](ctx, c, scalePath(cluster), nil)
}
