package queue_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

// Running counts jobs from their start to their end, and open jobs until they are finished.
func TestRunning(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	q := queue.New(queue.Machine{Processors: 2, Policy: queue.EASY},
		[]queue.Job{{Processors: 1, Requested: h, Runtime: h}, {Processors: 2, Requested: h, Runtime: h}})
	q.Submit(queue.Job{ID: 1, Processors: 1, Requested: 9 * h, Runtime: queue.Open})
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{0, 2}, {h - 1, 2}, {h, 1}, {2 * h, 1}} {
		q.Advance(c.at, nil)
		if got := q.Running(); got != c.want || q.Clone().Running() != c.want {
			t.Errorf("%d jobs run at %s, want %d", got, c.at, c.want)
		}
	}
	q.Finish(1)
	q.Advance(2*h, nil)
	if q.Running() != 1 || q.Waiting() != 0 { // the second job, which waited for both
		t.Errorf("%d jobs run, and %d wait", q.Running(), q.Waiting())
	}
}
