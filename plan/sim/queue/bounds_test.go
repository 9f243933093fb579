package queue_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A long queue is planned as each of its jobs alone would be: at the earliest instant at which it fits beside the jobs
// before it.
func TestLongQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const processors = 16
		var seen corral.Backlog
		seen.Processors = processors
		for range rapid.IntRange(60, 120).Draw(t, "waiting") {
			seen.Waiting = append(seen.Waiting, corral.QueuedJob{
				Processors: rapid.IntRange(1, processors).Draw(t, "n"),
				Limit:      corral.Seconds(rapid.IntRange(1, 100).Draw(t, "limit")) * corral.Seconds(time.Second)})
		}
		q := queue.Of(seen)
		o := queue.Look(q)
		free := o.Free.Clone()
		var want []time.Duration
		for _, j := range o.Jobs {
			at, _ := free.Fit(q.Now(), j.Requested, j.Processors)
			free.Take(at, at+j.Requested, j.Processors)
			want = append(want, at)
		}
		if got := o.Starts(o.Free); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		var planned []time.Duration
		for _, h := range queue.Planned(q) {
			planned = append(planned, h.Start)
		}
		if !slices.Equal(planned, want) {
			t.Fatalf("planned %v, want %v", planned, want)
		}
	})
}

// Jobs without a limit are planned one after another for longer than a time.Duration can express.
func TestEndlessQueue(t *testing.T) {
	t.Parallel()
	seen := corral.Backlog{Processors: 4, Running: []corral.QueuedJob{{Processors: 4}}}
	for range 1000 {
		seen.Waiting = append(seen.Waiting, corral.QueuedJob{Processors: 4})
	}
	q := queue.Of(seen)
	o := queue.Look(q)
	last := time.Duration(0)
	for i, at := range o.Starts(o.Free) {
		if at >= 0 && at < last {
			t.Fatalf("job %d starts at %s, before %s", i, at, last)
		}
		last = max(last, at)
	}
	queue.Unplanned(q)
}

// Jobs that are submitted later start at the same times in a queue and in its condensed copy.
func TestCondensed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const processors = 9
		q := queue.New(queue.Machine{Processors: processors, Policy: queue.Conservative}, nil)
		for _, j := range anyJobs(t, processors, true) {
			q.Submit(j)
			q.Advance(j.Submit, nil)
		}
		c := q.Condensed()
		starts := func(q *queue.Queue) map[int]time.Duration {
			q, all := q.Clone(), map[int]time.Duration{}
			started := func(j queue.Job, at time.Duration) {
				if j.ID >= 100 {
					all[j.ID] = at
				}
			}
			for k := range 4 {
				j := queue.Job{ID: 100 + k, Processors: 2 * k, Requested: time.Duration(3 + k)}
				j.Runtime = j.Requested
				q.Submit(j)
				q.Advance(q.Now()+1, started)
			}
			q.Advance(queue.Open, started)
			return all
		}
		if a, b := starts(q), starts(c); !maps.Equal(a, b) {
			t.Fatalf("%v, want %v", b, a)
		}
	})
}
