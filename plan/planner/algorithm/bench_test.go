package algorithm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A drawn workflow is built task by task, with lognormal runtimes from a mean and a standard deviation in seconds.
type drawn struct {
	plan.Work
	rng   *rand.Rand
	edges [][2]int
}

func (d *drawn) add(kind string, mean, sd float64, parents ...int) int {
	i := len(d.Tasks)
	sigma := math.Sqrt(math.Log(1 + sd*sd/(mean*mean)))
	seconds := mean * math.Exp(sigma*d.rng.NormFloat64()-sigma*sigma/2)
	d.Tasks = append(d.Tasks, plan.Task{ID: fmt.Sprintf("%s%d", kind, i), Kind: kind, Needs: corral.Resources{CPUs: 1,
		MemoryMiB: 900}, Runtime: time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)})
	for _, p := range parents {
		d.edges = append(d.edges, [2]int{p, i})
	}
	return i
}

func (d *drawn) work(b testing.TB) plan.Work {
	var err error
	if d.Graph, err = dag.New(len(d.Tasks), d.edges); err != nil {
		b.Fatal(err)
	}
	return d.Work
}

// cyberShake has the kinds of table 5.4 (Juve 2012): 1,000 tasks include 6 ExtractSGT, 496 SeisSynth, the same number
// of PeakValCalcOkaya, and two zip tasks.
func cyberShake(b *testing.B, tasks int) plan.Work {
	d := &drawn{rng: rand.New(rand.NewPCG(54, 0))}
	for len(d.Tasks) < tasks {
		var extracts, synths, peaks []int
		for range 6 {
			extracts = append(extracts, d.add("ExtractSGT", 110.58, 141.20))
		}
		for k := range 496 {
			synths = append(synths, d.add("SeisSynth", 79.47, 70.86, extracts[k%6]))
			peaks = append(peaks, d.add("PVCOkaya", 0.55, 2.48, synths[k]))
		}
		d.add("ZipSeis", 265.73, 275.04, synths...)
		d.add("ZipPeakSA", 195.80, 237.99, peaks...)
	}
	return d.work(b)
}

// montage has the shape and the kinds of table 5.2: each of n images is projected, compared with its neighbours, and
// corrected.
func montage(b *testing.B, images int) plan.Work {
	d := &drawn{rng: rand.New(rand.NewPCG(52, 0))}
	var projected, diffs, corrected []int
	for range images {
		projected = append(projected, d.add("mProjectPP", 1.73, 0.09))
	}
	for i := range images {
		for _, by := range []int{1, 2, 3} {
			diffs = append(diffs, d.add("mDiffFit", 0.66, 0.56, projected[i], projected[(i+by)%images]))
		}
	}
	model := d.add("mBgModel", 384.49, 1, d.add("mConcatFit", 143.26, 1, diffs...))
	for i := range images {
		corrected = append(corrected, d.add("mBackground", 1.72, 0.65, model, projected[i]))
	}
	table := d.add("mImgtbl", 2.78, 1.37, corrected...)
	for k := range max(1, images/124) {
		add := d.add("mAdd", 282.37, 137.93, append([]int{table}, corrected[k*len(corrected)/max(1, images/124):]...)...)
		d.add("mShrink", 66.10, 46.37, add)
	}
	return d.work(b)
}

// funnel is a wide level, one task, and another wide level.
func funnel(b testing.TB, wide int) plan.Work {
	d := &drawn{rng: rand.New(rand.NewPCG(1, 0))}
	var first []int
	for range wide {
		first = append(first, d.add("split", 600, 60))
	}
	middle := d.add("join", 1800, 1, first...)
	for range wide {
		d.add("last", 900, 200, middle)
	}
	return d.work(b)
}

// grid returns a site with 1,000 cpus in hosts of 8, with waits of some minutes and a walltime of a day.
func grid() plan.Site {
	waits := [...]time.Duration{0, time.Minute, 3 * time.Minute, 6 * time.Minute, 8 * time.Minute, 20 * time.Minute}
	return plan.Site{
		Name: "grid", Host: corral.Resources{CPUs: 8, MemoryMiB: 16_000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Hosts: 16, CPUs: 1000, Pilots: plan.Unlimited, Walltime: 24 * time.Hour, Margin: time.Minute,
		Overhead: 10 * time.Second, Tariff: plan.CoreHours,
		Wait:  func(plan.Shape) time.Duration { return 5 * time.Minute },
		Waits: func(_ plan.Shape, share float64) time.Duration { return waits[int(share*float64(len(waits)-1))] },
	}
}

// BenchmarkMake makes plans with their fronts and their odds, as corrald does for `corral plan`, for a hundred to a
// million tasks. It reports the seconds per plan, the points of the front, and the peak memory of the process, including
// the workflow.
func BenchmarkMake(b *testing.B) {
	sure := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(3 * time.Hour), Confidence: 0.9}
	weighed := plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}
	for _, tt := range []struct {
		name   string
		work   func(b *testing.B) plan.Work
		goal   plan.Goal
		by     plan.Algorithm
		points int
	}{
		{"funnel-121-sure", func(b *testing.B) plan.Work { return funnel(b, 60) }, sure, plan.Staircase, 1},
		{"funnel-121-sure-auto", func(b *testing.B) plan.Work { return funnel(b, 60) }, sure, plan.Auto, 1},
		{"montage-6000", func(b *testing.B) plan.Work { return montage(b, 1190) }, weighed, plan.Staircase, 8},
		{"montage-6000-sure", func(b *testing.B) plan.Work { return montage(b, 1190) }, sure, plan.Staircase, 1},
		{"cybershake-1000", func(b *testing.B) plan.Work { return cyberShake(b, 1000) }, weighed, plan.Staircase, 8},
		{"cybershake-10000", func(b *testing.B) plan.Work { return cyberShake(b, 10_000) }, weighed, plan.Staircase, 8},
		{"cybershake-100000", func(b *testing.B) plan.Work { return cyberShake(b, 100_000) }, weighed, plan.Staircase, 8},
		{"cybershake-840000", func(b *testing.B) plan.Work { return cyberShake(b, 840_000) }, weighed, plan.Staircase, 8},
	} {
		b.Run(tt.name, func(b *testing.B) {
			q := algorithm.Question{Goal: tt.goal, Model: montecarlo.Model{Spread: montecarlo.DefaultSpread,
				Problem: plan.Problem{Work: tt.work(b), Sites: []plan.Site{grid()},
					Cluster: plan.Cluster{Hop: 2 * time.Millisecond, Rate: 1500}}}}
			points := 0
			forgetPeak(b)
			for b.Loop() {
				q.Model = q.Model.Remembering()
				made, err := q.Make(b.Context(), tt.by)
				if err != nil || !made.Feasible {
					b.Fatal(err, made.Reasons)
				}
				made.Odds = q.Model.Odds(b.Context(), made, 0)
				points = len(made.Front)
			}
			b.ReportMetric(float64(len(q.Model.Work.Tasks)), "tasks")
			b.ReportMetric(float64(points), "points")
			b.ReportMetric(peak(b), "peak-MiB")
			if points < tt.points {
				b.Errorf("a front of %d points, want %d at least", points, tt.points)
			}
		})
	}
}

// forgetPeak resets the peak memory of the process to the current value.
func forgetPeak(b *testing.B) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Log("the peak counts from the process's beginning: ", err)
	}
}

// peak returns the peak resident memory of the process in MiB.
func peak(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	var kib float64
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscanf(n, "%f kB", &kib); err != nil {
				b.Fatal(err)
			}
		}
	}
	return kib / 1024
}
