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
	mu    sync.Mutex // guards both
	seen  []string
	tried []string // by predictions
}

// Forecast implements Queues: a wait as long as half of the walltime, except at a site that predicts nothing.
func (s *sights) Forecast(_ context.Context, site corral.Site, queue string, shapes []corral.Shape) (
	known []corral.Shape, waits []corral.Seconds, source string, err error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, site.Name+"/"+queue)
	if site.Name == "mute" {
		return nil, nil, "", corral.Errorf(corral.Unsatisfiable, "no prediction")
	}
	for _, shape := range shapes {
		waits = append(waits, shape.Walltime/2)
	}
	return shapes, waits, "sbatch --test-only", nil
}

// Backlog implements Queues.
func (s *sights) Backlog(_ context.Context, site corral.Site, queue string) (corral.Backlog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, site.Name+"/"+queue)
	b := corral.Backlog{Queue: queue, Processors: 8, At: time.Now(),
		Waiting: []corral.QueuedJob{{Processors: 8, Limit: corral.Seconds(time.Hour)}}}
	switch site.Name {
	case "dead":
		return corral.Backlog{}, corral.Errorf(corral.Unavailable, "no answer")
	case "unlisted":
		return corral.Backlog{}, corral.Errorf(corral.Unsatisfiable, "no list of jobs")
	case "hidden", "mute":
		b.Notes = []string{"the jobs of others are hidden"}
	}
	return b, nil
}

// TestQueuesAreLookedAtWithoutWaits: only queues about whose waits nothing is known or given are looked at, and one whose
// jobs are not all visible is predicted by the batch system. A site that does not answer is asked once.
func TestQueuesAreLookedAtWithoutWaits(t *testing.T) {
	t.Parallel()
	site := func(name, batch string, state corral.SiteState) provision.Facts {
		return provision.Facts{Site: corral.Site{Name: name, Batch: batch, State: state, Facts: &corral.SiteFacts{
			Queues: []corral.SiteQueue{{Name: "normal", Default: true, CPUs: 8, Nodes: 1}}}}}
	}
	known, related := site("known", "slurm", corral.SiteReady), site("related", "slurm", corral.SiteReady)
	known.Waits, related.Others = []corral.Wait{{Queue: "normal"}}, []corral.Wait{{Site: "known"}}
	all := []provision.Facts{known, related, site("new", "slurm", corral.SiteReady),
		site("hidden", "slurm", corral.SiteReady), site("mute", "slurm", corral.SiteReady),
		site("unlisted", "slurm", corral.SiteReady), site("dead", "slurm", corral.SiteReady), site("here", corral.ForkBatch, corral.SiteReady),
		site("gone", "slurm", corral.SiteExiting)}
	var queues sights
	desk, given := &Desk{queues: &queues}, corral.Seconds(time.Minute)
	for _, whatIf := range []plan.WhatIf{{QueueWait: &given}, {Overhead: &given}} {
		if err := desk.stand(t.Context(), all, whatIf); err != nil || len(queues.seen) > 0 {
			t.Fatalf("%+v: %v, looked at %q", whatIf, err, queues.seen)
		}
	}
	if err := desk.stand(t.Context(), all, plan.WhatIf{Price: "1SU/cpu-hour"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(queues.seen)
	if diff := cmp.Diff([]string{"dead/normal", "hidden/normal", "mute/normal", "new/normal", "unlisted/normal"}, queues.seen); diff != "" {
		t.Errorf("looked at (-want +got):\n%s", diff)
	}
	for _, f := range all {
		const queue, predicted = "assumed from the queue, with 0 running and 1 waiting jobs", "predicted by sbatch --test-only"
		basis := map[string]string{"new": queue, "mute": queue, "hidden": predicted, "unlisted": predicted}[f.Site.Name]
		if stands := f.Stands["normal"]; stands.Basis != basis {
			t.Errorf("%s: its queue is %+v, want %q", f.Site.Name, stands, basis)
		}
	}
	slices.Sort(queues.tried)
	if diff := cmp.Diff([]string{"hidden/normal", "mute/normal", "unlisted/normal"}, queues.tried); diff != "" {
		t.Errorf("predictions were asked for (-want +got):\n%s", diff)
	}
	wait := all[3].Stands["normal"].Wait
	for walltime, want := range map[time.Duration]time.Duration{ // by the next larger walltime that was tried
		time.Minute: 15 * time.Minute / 2, 2 * time.Hour: 2 * time.Hour, 100 * time.Hour: 12 * time.Hour,
	} {
		shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 4}, Walltime: walltime}
		if got := wait(shape); got != want {
			t.Errorf("a pilot for %s waits %s, want %s", walltime, got, want)
		}
	}
}
