package queue_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

const (
	h = time.Hour
	s = corral.Seconds(h)
)

// Two jobs run, a third waits for both, and a fourth is backfilled: the two processors that it needs are free from the
// end of the first job on.
func TestOf(t *testing.T) {
	t.Parallel()
	q := queue.Of(corral.Backlog{Processors: 8, Hidden: 1,
		Running: []corral.QueuedJob{{Processors: 4, Limit: 10 * s, Elapsed: 8 * s}, {Processors: 2, Limit: 4 * s, Elapsed: s}},
		Waiting: []corral.QueuedJob{{Processors: 7, Limit: s}, {Processors: 2, Limit: s}}})
	o := queue.Look(q)
	if q.Now() != 8*h || q.Running() != 2+1 || q.Waiting() != 2 {
		t.Errorf("at %s %d run, %d wait", q.Now(), q.Running(), q.Waiting())
	}
	starts := o.Starts(o.Free)
	if starts[0]-q.Now() != 3*h || starts[1]-q.Now() != 2*h {
		t.Errorf("they start at %v, from %s on", starts, q.Now())
	}
	if at, ok := o.Free.Fit(q.Now(), h, 8); ok && at < q.Now()+300*24*h {
		t.Errorf("all processors are free at %s, one of which is held by an unknown job", at)
	}
}

// Observations may be inconsistent: a replica can be created from any observation.
func TestOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, to int) int { return rapid.IntRange(0, to).Draw(t, name) }
		jobs := func(name string) (all []corral.QueuedJob) {
			for range number(name, 6) {
				all = append(all, corral.QueuedJob{Processors: number("n", 9), Limit: corral.Seconds(number("limit", 5)) * s,
					Elapsed: corral.Seconds(number("elapsed", 6)) * s})
			}
			return all
		}
		seen := corral.Backlog{Processors: number("processors", 12), Hidden: number("hidden", 3), Running: jobs("running")}
		for _, j := range jobs("waiting") {
			j.Elapsed = 0
			seen.Waiting = append(seen.Waiting, j)
		}
		q := queue.Of(seen)
		o := queue.Look(q)
		for at, free := range o.Free.Steps() {
			if free < 0 || at < q.Now() {
				t.Fatalf("%d are free at %s, and it is %s", free, at, q.Now())
			}
		}
		for i, start := range o.Starts(o.Free) {
			if start < q.Now() {
				t.Fatalf("job %d starts at %s, and it is %s", i, start, q.Now())
			}
		}
		q.Advance(queue.Open, nil)
		if q.Waiting() > 0 {
			t.Fatalf("%d jobs wait forever", q.Waiting())
		}
	})
}
