//go:build soak

package queue_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/datasets"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// The whole trace KTH-SP2, 28,476 jobs from eleven months, on its machine of 100 processors. The waits in the trace
// (mean 15,296 s, median 300 s, 0.9 quantile 36,300 s) are longer: the real scheduler was not plain EASY with these
// requested times.
func TestAllOfKTH(t *testing.T) {
	jobs := jobsOf(t, datasets.Path(t, datasets.KTH))
	asReference(t, jobs, 100)
	for policy, want := range map[queue.Discipline]figures{
		queue.FCFS:         {353943, 409486, 756582},
		queue.EASY:         {6837, 0, 21613},
		queue.Conservative: {7251, 0, 23755},
	} {
		began := time.Now()
		held := queue.Replay(queue.Machine{Processors: 100, Policy: policy}, jobs)
		t.Logf("%s: %+v, in %s", policy, figuresOf(held), time.Since(began))
		if got := figuresOf(held); got != want {
			t.Errorf("%s: mean wait %d s, median %d s, 0.9 quantile %d s; want %+v", policy, got.mean, got.median, got.most, want)
		}
	}
}
