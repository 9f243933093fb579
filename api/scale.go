package api

import (
	"context"
	"net/http"

	"github.com/corral-pilot/corral"
)

// NewScale has corrald keep a cluster's workers at what its queue can use.
type NewScale struct {
	Sites    []string       `json:"sites"`              // names or ids, in the order in which they are asked
	Min      int            `json:"min_cpus,omitempty"` // kept even when nothing waits
	Max      int            `json:"max_cpus"`           // never more are held
	CPUs     int            `json:"cpus"`               // of each worker
	Walltime corral.Seconds `json:"walltime_s"`         // of each worker
	Idle     corral.Seconds `json:"idle_s,omitempty"`   // after which a worker above the minimum leaves; 0: a minute
}

func scalePath(cluster string) string { return clusterPath(cluster) + "/scale" }

// ScaleCluster begins to scale a cluster, which is named by its name or id. A Conflict error if it is scaled already,
// or if a plan is provisioned there (corral run --auto, corral provision) whose run is not over.
func (c *Client) ScaleCluster(ctx context.Context, cluster string, s NewScale) (corral.Scale, error) {
	return send[corral.Scale](ctx, c, call{method: http.MethodPut, path: scalePath(cluster)}, s)
}

// ClusterScale returns how a cluster is scaled, with what the last look found; a NotFound error if it is not.
func (c *Client) ClusterScale(ctx context.Context, cluster string) (corral.Scale, error) {
	return get[corral.Scale](ctx, c, scalePath(cluster), nil)
}

// UnscaleCluster ends the scaling of a cluster and lets its pilots go: workers finish what they run. It returns the
// scale as it was.
func (c *Client) UnscaleCluster(ctx context.Context, cluster string) (corral.Scale, error) {
	return remove[corral.Scale](ctx, c, scalePath(cluster), nil)
}
