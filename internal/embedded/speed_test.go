package embedded_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// A worker on a host of half the speed has an hour left: it takes a task of 25 min, and none of 50 min, which waits for
// a fast worker.
func TestSlowWorkerTakesNoTaskThatItWouldCut(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Speed = 0.5 })
	b.awaitWorkers(t, 1)
	if got := b.d.Workers()[0].Speed; got != 0.5 {
		t.Errorf("the worker's speed is %v, want 0.5", got)
	}
	long, short := sh(1, b.dir, "true"), sh(2, b.dir, "true")
	long.Tasks[0].Estimate, short.Tasks[0].Estimate = 50*time.Minute, 25*time.Minute
	b.d.Submit([]execution.Job{long, short})
	b.sink.awaitResults(t, 1)
	b.work(t, workerConfig("tag/1", b.address()))
	results := b.sink.awaitResults(t, 2)
	if fast, slow := results[1].Worker, results[2].Worker; fast != "tag/1" || slow != "tag/0" {
		t.Errorf("the task of 50 min ran on %s, that of 25 min on %s; want tag/1 and tag/0", fast, slow)
	}
	if _, returned := b.sink.seen(); len(returned) > 0 {
		t.Errorf("jobs were returned: %v", returned)
	}
}
