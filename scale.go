package corral

import (
	"fmt"
	"strings"
	"time"
)

// A Scale has corrald keep a cluster's workers at what its queue can use, between two bounds. A cluster has at most
// one; it is there until it is removed, whatever happens to corrald.
type Scale struct {
	Cluster     ClusterID `json:"cluster_id"`
	ClusterName string    `json:"cluster"`
	Owner       string    `json:"owner"`
	Sites       []string  `json:"sites"`      // names, in the order in which they are asked
	SiteIDs     []SiteID  `json:"site_ids"`   // of the same sites
	Min         int       `json:"min_cpus"`   // kept even when nothing waits
	Max         int       `json:"max_cpus"`   // never more are held, including those from other requests
	CPUs        int       `json:"cpus"`       // of each worker
	Walltime    Seconds   `json:"walltime_s"` // of each worker
	Idle        Seconds   `json:"idle_s"`     // a worker above the minimum leaves after this time without work
	Report      string    `json:"report"`     // what the last look found, and what was done about it
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"` // of the report
}

// Terms says what was asked for.
func (s Scale) Terms() string {
	return fmt.Sprintf("%d to %s at %s, in workers of %s for %s", s.Min, counted(s.Max, "cpu"),
		strings.Join(s.Sites, ", "), counted(s.CPUs, "cpu"), s.Walltime)
}
