package workload_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// levels holds the levels of the quantiles below.
var levels = []float64{0.1, 0.25, 0.5, 0.75, 0.9, 0.99}

// lublin256 describes the output of the authors' program: lublin_256.swf, 10,000 jobs for 256 processors (github
// DIR-LAB/deep-batch-scheduler cd433e3). The quantiles are those at levels; the parts of the day are six hours each,
// from midnight on.
var lublin256 = struct {
	sizes, runtimes, gaps []float64
	meanSize, meanRuntime float64
	serial, powers        float64 // shares of all jobs, and of the non-serial ones
	day                   []float64
}{
	sizes: []float64{1, 2, 8, 17, 64, 256}, runtimes: []float64{7, 21, 137, 8272, 15590, 36174},
	gaps: []float64{18, 41, 116, 366, 1272, 11552}, meanSize: 22.1, meanRuntime: 4863, serial: 0.249, powers: 0.815,
	day: []float64{0.073, 0.286, 0.432, 0.21},
}

// near checks that a value differs from the wanted value by at most the given share.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, 100*share)
	}
}

func quantiles(t *testing.T, what string, got, want []float64, share float64) {
	t.Helper()
	slices.Sort(got)
	for i, level := range levels {
		near(t, what, got[int(level*float64(len(got)))], want[i], share)
	}
}

// The distributions agree with those of the authors' program. The quantiles of 40,000 jobs are within a few percent of
// the quantiles of the distribution; the quantiles of the 10,000 jobs in the file deviate slightly more.
func TestMarginals(t *testing.T) {
	t.Parallel()
	var sizes, runtimes, gaps []float64
	var size, runtime, serial, powers float64
	day := make([]float64, 4)
	for seed := range uint64(4) {
		before := time.Duration(0)
		for _, j := range workload.Draw(10_000, 256, 0, seed) {
			n, r := float64(j.Processors), j.Runtime.Seconds()
			sizes, runtimes, gaps = append(sizes, n), append(runtimes, r), append(gaps, (j.Submit-before).Seconds())
			before = j.Submit
			size, runtime = size+n, runtime+r
			day[j.Submit/(6*time.Hour)%4]++
			switch {
			case j.Processors == 1:
				serial++
			case bits.OnesCount(uint(j.Processors)) == 1:
				powers++
			}
		}
	}
	n := float64(len(sizes))
	quantiles(t, "quantile of sizes", sizes, lublin256.sizes, 0.25) // 17 or 21: there are few distinct sizes
	quantiles(t, "quantile of runtimes", runtimes, lublin256.runtimes, 0.1)
	quantiles(t, "quantile of times between arrivals", gaps, lublin256.gaps, 0.1)
	near(t, "mean size", size/n, lublin256.meanSize, 0.05)
	near(t, "mean runtime", runtime/n, lublin256.meanRuntime, 0.05)
	near(t, "share of serial jobs", serial/n, lublin256.serial, 0.05)
	near(t, "share of powers of two", powers/(n-serial), lublin256.powers, 0.03)
	for i := range day {
		near(t, "share of a part of the day", day[i]/n, lublin256.day[i], 0.2)
	}
}

// Larger jobs run for longer, according to the mixture.
func TestLargeJobsRunForLonger(t *testing.T) {
	t.Parallel()
	var sum, n [2]float64
	for _, j := range workload.Draw(20_000, 256, 0, 1) {
		large := 0
		if j.Processors > 64 {
			large = 1
		}
		sum[large], n[large] = sum[large]+math.Log(1+j.Runtime.Seconds()), n[large]+1
	}
	if small, large := sum[0]/n[0], sum[1]/n[1]; large < small+1 {
		t.Errorf("mean logarithm of runtimes: %.2f of jobs to 64 processors, %.2f of larger ones", small, large)
	}
}

// For any machine and load, jobs fit the machine, are sorted by submission, and produce the load. The same arguments
// yield the same jobs.
func TestLoad(t *testing.T) {
	t.Parallel()
	for _, processors := range []int{1, 2, 5, 16, 100, 430, 5000} {
		for _, load := range []float64{0.3, 0.7, 1.2} {
			jobs := workload.Draw(3000, processors, load, 7)
			near(t, "load", queue.Load(jobs, processors), load, 0.01)
			before := time.Duration(0)
			for i, j := range jobs {
				if why := (queue.Machine{Processors: processors}).Refuses(j); why != "" || j.Submit < before || j.Runtime < 0 {
					t.Fatalf("%d processors, load %g: job %d, %+v: %s", processors, load, i, j, why)
				}
				before = j.Submit
			}
			if diff := cmp.Diff(jobs, workload.Draw(3000, processors, load, 7)); diff != "" {
				t.Fatalf("the same arguments drew other jobs:\n%s", diff)
			}
		}
	}
	if load := queue.Load(workload.Draw(1, 10, 0.5, 1), 10); load != 0 {
		t.Errorf("one job loads a machine by %g", load)
	}
}
