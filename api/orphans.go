package api

import (
	"context"
	"net/http"
	"time"

	"github.com/corral-pilot/corral"
)

// An Orphan is a job of ours at a site that corrald has no record of: its database was lost, or an older one was put
// back.
type Orphan struct {
	Tag       string         `json:"tag"`
	Kind      corral.JobKind `json:"kind"`                  // setup, pilot, cleanup or probe, as its tag says
	SiteJobID string         `json:"site_job_id,omitempty"` // the site's own; empty: the batch system does not know it
	State     string         `json:"state"`                 // QUEUED, RUNNING, ENDED; UNKNOWN: of no job there
	StartedAt time.Time      `json:"started_at,omitzero"`

	// Of a pilot that is alive, as its order says:
	Hosts     int            `json:"hosts,omitempty"`
	CPUs      int            `json:"cpus,omitempty"`       // of each host
	MemoryMiB int            `json:"memory_mib,omitempty"` // of each host
	GPUs      int            `json:"gpus,omitempty"`       // of each host
	Walltime  corral.Seconds `json:"walltime_s,omitempty"`
	Cluster   string         `json:"cluster,omitempty"` // whose HTCondor pool its workers join

	Kept    string           `json:"kept,omitempty"`       // why it cannot be adopted; empty: it can
	Glidein corral.GlideinID `json:"glidein_id,omitempty"` // in an answer: it was adopted as this one's attempt
	Fate    string           `json:"fate,omitempty"`       // in an answer: what became of it, adopted or cancelled
}

// What may be done with orphans.
const (
	AdoptOrphans  = "adopt"
	CancelOrphans = "cancel"
)

// OrphanFates lists them.
var OrphanFates = []string{AdoptOrphans, CancelOrphans}

// SettleOrphans says what is to become of orphans.
type SettleOrphans struct {
	Do      string   `json:"do"`                // adopt or cancel
	Tags    []string `json:"tags,omitempty"`    // absent or []: all that can be
	Cluster string   `json:"cluster,omitempty"` // that adopted pilots work for, by name or id; absent: default
}

// Orphans lists the jobs at a site that corrald does not know, by tag. corrald goes there for it.
func (c *Client) Orphans(ctx context.Context, ref string) ([]Orphan, error) {
	return list[Orphan](ctx, c, sitePath(ref)+"/orphans", nil)
}

// SettleOrphans adopts or cancels orphans, and returns those that it was done with. To repeat it is harmless.
func (c *Client) SettleOrphans(ctx context.Context, ref string, s SettleOrphans) ([]Orphan, error) {
	all, err := send[List[Orphan]](ctx, c, call{method: http.MethodPost, path: sitePath(ref) + "/orphans"}, s)
	return all.Items, err
}
