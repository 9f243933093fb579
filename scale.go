package corral

import (
	"fmt"
	"strings"
	"time"
)

// A Scale makes corrald match a cluster's workers to its queue, between two bounds. A cluster has at most one scale,
// which survives restarts of corrald until it is removed.
type Scale struct {
	Cluster     ClusterID `json:"cluster_id"`
	ClusterName string    `json:"cluster"`
	Owner       string    `json:"owner"`
	Sites       []string  `json:"sites"`      // names, in the order in which they are used
	SiteIDs     []SiteID  `json:"site_ids"`   // of the same sites
	Min         int       `json:"min_cpus"`   // kept even when no task waits
	Max         int       `json:"max_cpus"`   // upper bound, including workers from other requests
	CPUs        int       `json:"cpus"`       // per worker
	Walltime    Seconds   `json:"walltime_s"` // per worker
	Idle        Seconds   `json:"idle_s"`     // a worker above the minimum leaves after this time without work
	Report      string    `json:"report"`     // result of the last check, and the actions taken
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"` // of the report
}

// Terms describes the requested scale.
func (s Scale) Terms() string {
	return fmt.Sprintf("%d to %s at %s, in workers of %s for %s", s.Min, counted(s.Max, "cpu"),
		strings.Join(s.Sites, ", "), counted(s.CPUs, "cpu"), s.Walltime)
}
