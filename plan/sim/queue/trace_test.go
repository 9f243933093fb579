package queue_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// jobsOf reads a trace.
func jobsOf(t *testing.T, file string) []queue.Job {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := workload.ReadJobs(context.Background(), f, file)
	if err != nil {
		t.Fatal(err)
	}
	return trace.Jobs
}

// figures are the mean, the median and the 0.9 quantile of waits, in seconds.
type figures struct{ mean, median, most int }

func figuresOf(held []queue.Held) figures {
	var waits []float64
	sum := 0.0
	for _, h := range held {
		waits = append(waits, h.Wait().Seconds())
		sum += h.Wait().Seconds()
	}
	slices.Sort(waits)
	n := len(waits)
	return figures{int(sum / float64(n)), int(waits[n/2]), int(waits[n*9/10])}
}

// asReference checks that EASY starts each job of a trace at the same time as the reference.
func asReference(t *testing.T, jobs []queue.Job, processors int) {
	t.Helper()
	want := easyReference(processors, jobs)
	for i, h := range queue.Replay(queue.Machine{Processors: processors, Policy: queue.EASY}, jobs) {
		if h.Start != want[i] {
			t.Fatalf("job %d starts at %s, the reference's at %s", i, h.Start, want[i])
		}
	}
}

// For the first 3,000 jobs of KTH-SP2 on its machine of 100 processors, EASY agrees with the reference, and the results
// of each policy are unchanged.
func TestBeginningOfKTH(t *testing.T) {
	t.Parallel()
	jobs := jobsOf(t, "../workload/testdata/kth-sp2-3000.swf.gz")
	asReference(t, jobs, 100)
	for policy, want := range map[queue.Discipline]figures{
		queue.FCFS: {83872, 56951, 201891}, queue.EASY: {7832, 0, 29120}, queue.Conservative: {7204, 0, 26403},
	} {
		if got := figuresOf(queue.Replay(queue.Machine{Processors: 100, Policy: policy}, jobs)); got != want {
			t.Errorf("%s: mean wait %d s, median %d s, 0.9 quantile %d s; want %+v", policy, got.mean, got.median, got.most, want)
		}
	}
}
