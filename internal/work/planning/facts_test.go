package planning

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// sights is a source of the jobs in sites' queues that records which sites were looked at.
type sights struct {
	mu   sync.Mutex // guards seen
	seen []string
}

// Backlog implements Queues.
func (s *sights) Backlog(_ context.Context, site corral.Site, queue string) (corral.Backlog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, site.Name+"/"+queue)
	if site.Name == "hidden" {
		return corral.Backlog{}, corral.Errorf(corral.Unavailable, "no answer")
	}
	return corral.Backlog{Queue: queue, Processors: 8, At: time.Now(),
		Waiting: []corral.QueuedJob{{Processors: 8, Limit: corral.Seconds(time.Hour)}}}, nil
}

// TestQueuesAreLookedAtWithoutWaits: only queues about whose waits nothing is known or given are looked at, and one that
// cannot be seen remains unknown.
func TestQueuesAreLookedAtWithoutWaits(t *testing.T) {
	t.Parallel()
	site := func(name, batch string, state corral.SiteState) provision.Facts {
		return provision.Facts{Site: corral.Site{Name: name, Batch: batch, State: state, Facts: &corral.SiteFacts{
			Queues: []corral.SiteQueue{{Name: "normal", Default: true, CPUs: 8, Nodes: 1}}}}}
	}
	known, related := site("known", "slurm", corral.SiteReady), site("related", "slurm", corral.SiteReady)
	known.Waits, related.Others = []corral.Wait{{Queue: "normal"}}, []corral.Wait{{Site: "known"}}
	all := []provision.Facts{known, related, site("new", "slurm", corral.SiteReady),
		site("hidden", "slurm", corral.SiteReady), site("here", corral.ForkBatch, corral.SiteReady),
		site("gone", "slurm", corral.SiteExiting)}
	var queues sights
	desk, wait := &Desk{queues: &queues}, corral.Seconds(time.Minute)
	for _, given := range []plan.WhatIf{{QueueWait: &wait}, {Overhead: &wait}} {
		if err := desk.stand(t.Context(), all, given); err != nil || len(queues.seen) > 0 {
			t.Fatalf("%+v: %v, looked at %q", given, err, queues.seen)
		}
	}
	if err := desk.stand(t.Context(), all, plan.WhatIf{Price: "1SU/cpu-hour"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(queues.seen)
	if diff := cmp.Diff([]string{"hidden/normal", "new/normal"}, queues.seen); diff != "" {
		t.Errorf("looked at (-want +got):\n%s", diff)
	}
	for _, f := range all {
		if stands, ok := f.Stands["normal"]; ok != (f.Site.Name == "new") || ok && stands.Waiting != 1 {
			t.Errorf("%s: its queue is %+v, %v", f.Site.Name, stands, ok)
		}
	}
}
