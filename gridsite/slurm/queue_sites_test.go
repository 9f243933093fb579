//go:build sites

package slurm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// The queue of the real Slurm is understood: a running job with its limit and elapsed time, including a job in another
// queue on the same nodes. Other tests run jobs there at the same time.
func TestBacklogOfRealSlurm(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, nil)
	tag, _ := s.submit("sleep 600", func(spec *gridsite.JobSpec) { spec.Walltime = 13 * time.Minute })
	ours := func(j corral.QueuedJob) bool { return j.Limit == corral.Seconds(13*time.Minute) && j.Processors > 0 }
	for t.Context().Err() == nil { // it runs as soon as other tests leave room
		b, err := s.Backlog(t.Context(), "")
		if err != nil || b.Queue != "normal" || b.Processors < 2 || time.Since(b.At) > time.Hour {
			t.Fatalf("%+v, %v", b, err)
		}
		i := slices.IndexFunc(b.Running, ours)
		if i >= 0 && b.Running[i].Elapsed > 0 {
			if j := b.Running[i]; j.StartsAt.IsZero() || time.Duration(j.Elapsed) > 13*time.Minute {
				t.Errorf("it runs as %+v", j)
			}
			break
		}
	}
	if _, err := s.Backlog(t.Context(), "held"); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("of a queue that is down: %v", err)
	}
	// The job holds processors of all queues that include its node, and jobs that wait in another queue also wait for
	// these processors. Nothing is hidden for long: only while a job of another test ends.
	for b := (corral.Backlog{Hidden: 1}); b.Hidden > 0; {
		var err error
		if b, err = s.Backlog(t.Context(), "urgent"); err != nil || !slices.ContainsFunc(b.Running, ours) {
			t.Fatalf("urgent: %+v, %v", b, err)
		}
	}
	if _, err := s.Backlog(t.Context(), "no such queue"); corral.KindOf(err) != corral.NotFound {
		t.Errorf("of no queue: %v", err)
	}
	if err := s.Cancel(t.Context(), tag, 0); err != nil {
		t.Error(err)
	}
}
