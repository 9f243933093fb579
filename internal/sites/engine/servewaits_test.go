package engine

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// keeper is a batch system that accepts setup jobs and keeps them queued.
type keeper struct {
	gridsite.Batch
	status func(tag string) gridsite.JobStatus
	cancel func(tag string)
}

func isSetup(tag string) bool { return strings.HasPrefix(tag, "corral-setup-") }

func (k keeper) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if isSetup(spec.Tag) {
		return "1", nil
	}
	return k.Batch.Submit(ctx, spec)
}

func (k keeper) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	known := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		if isSetup(tag) {
			known[tag] = k.status(tag)
		}
	}
	return known, nil
}

func (k keeper) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	if isSetup(tag) {
		k.cancel(tag)
		return nil
	}
	return k.Batch.Cancel(ctx, tag, grace)
}

// A site whose setup job waits shows the batch system's reason, and fails with that reason if the job can never
// start.
func TestWhyASiteIsNotSetUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var (
		mu        sync.Mutex // guards the fields below
		said      = gridsite.JobStatus{ID: "1", Phase: gridsite.Queued, Waits: "Priority"}
		cancelled = map[string]bool{}
	)
	w.fault = func(b gridsite.Batch) gridsite.Batch {
		return keeper{b, func(tag string) gridsite.JobStatus {
			mu.Lock()
			defer mu.Unlock()
			st := said
			st.Tag = tag
			if cancelled[tag] {
				st.Phase, st.Killed, st.EndedAt = gridsite.Ended, gridsite.ByCancel, time.Now()
			}
			return st
		}, func(tag string) {
			mu.Lock()
			defer mu.Unlock()
			cancelled[tag] = true
		}}
	}
	w.start()
	s := w.site("here")
	saying := func(state corral.SiteState, reason string) {
		t.Helper()
		w.until(reason, func() bool { s := w.siteNow(s.ID); return s.State == state && s.Reason == reason })
	}
	saying(corral.SiteStaging, "its setup job waits: Priority")
	mu.Lock()
	said.Waits, said.Never = "PartitionTimeLimit", true
	mu.Unlock()
	saying(corral.SiteStaging, "its setup job waits: PartitionTimeLimit")
	saying(corral.SiteFailed, "setup job 1 failed: the site accepted it but never starts it: PartitionTimeLimit")
}
