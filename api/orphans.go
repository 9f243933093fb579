package api

import (
	"context"
	"net/http"
	"time"

	"github.com/corral-pilot/corral"
)

// An Orphan is a job of Corral at a site without a record in corrald: the database was lost, or replaced by an older
// one.
type Orphan struct {
	Tag       string         `json:"tag"`
	Kind      corral.JobKind `json:"kind"`                  // setup, pilot, cleanup or probe, taken from its tag
	SiteJobID string         `json:"site_job_id,omitempty"` // the site's own id; empty: no such job in the batch system
	State     string         `json:"state"`                 // QUEUED, RUNNING, ENDED; UNKNOWN: no such job
	StartedAt time.Time      `json:"started_at,omitzero"`

	*corral.Shape        // of a live pilot, from its order; otherwise nil: check it before its fields
	Cluster       string `json:"cluster,omitempty"` // the cluster whose HTCondor pool its workers join

	Kept    string           `json:"kept,omitempty"`       // why it cannot be adopted; empty: it can
	Glidein corral.GlideinID `json:"glidein_id,omitempty"` // in an answer: the glidein that adopted it as an attempt
	Fate    string           `json:"fate,omitempty"`       // in an answer: its fate, adopted or cancelled
}

// Actions on orphans.
const (
	AdoptOrphans  = "adopt"
	CancelOrphans = "cancel"
)

// OrphanFates lists the actions.
var OrphanFates = []string{AdoptOrphans, CancelOrphans}

// SettleOrphans requests an action on orphans.
type SettleOrphans struct {
	Do      string   `json:"do"`                // adopt or cancel
	Tags    []string `json:"tags,omitempty"`    // absent or []: all orphans to which the action applies
	Cluster string   `json:"cluster,omitempty"` // cluster for adopted pilots, by name or id; absent: default
}

// Orphans lists the jobs at a site that have no record in corrald, by tag. For this request corrald connects to the
// site.
func (c *Client) Orphans(ctx context.Context, ref string) ([]Orphan, error) {
	return list[Orphan](ctx, c, sitePath(ref)+"/orphans", nil)
}

// SettleOrphans adopts or cancels orphans, and returns those for which it succeeded. Repeating the request is harmless.
func (c *Client) SettleOrphans(ctx context.Context, ref string, s SettleOrphans) ([]Orphan, error) {
	all, err := send[List[Orphan]](ctx, c, call{method: http.MethodPost, path: sitePath(ref) + "/orphans"}, s)
	return all.Items, err
}
