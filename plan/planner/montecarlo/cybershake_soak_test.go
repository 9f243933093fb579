//go:build soak

package montecarlo_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/baseline"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A cyberShake is the size of a workflow with the task kinds of table 5.4 (Juve 2012): the number of sub-workflows, and
// how many of them run at a time.
type cyberShake struct {
	Seed     uint64 `json:"seed"`
	Subs     int    `json:"subworkflows"`
	UnderWay int    `json:"under_way"`
	Extract  int    `json:"extract_sgt"` // per sub-workflow
	Synth    int    `json:"seis_synth"`  // per sub-workflow, and as many PeakValCalcOkaya
	Static   int    `json:"static_cpus"`
}

// kinds holds the runtimes of table 5.4: mean and standard deviation in seconds.
var kinds = map[string][2]float64{
	"ExtractSGT": {110.58, 141.20}, "SeisSynth": {79.47, 70.86}, "ZipSeis": {265.73, 275.04},
	"PVCOkaya": {0.55, 2.48}, "ZipPeakSA": {195.80, 237.99},
}

// work makes the workflow: ExtractSGT → SeisSynth → {ZipSeis, PVCOkaya → ZipPeakSA} in each sub-workflow, which begins
// when the one UnderWay positions before it has ended. Runtimes are lognormal.
func (c cyberShake) work(t *testing.T) plan.Work {
	t.Helper()
	rng := rand.New(rand.NewPCG(c.Seed, 54))
	w := plan.Work{Name: "CyberShake"}
	var edges [][2]int
	add := func(kind string, parents ...int) int {
		i, of := len(w.Tasks), kinds[kind]
		sigma := math.Sqrt(math.Log(1 + of[1]*of[1]/(of[0]*of[0])))
		seconds := of[0] * math.Exp(sigma*rng.NormFloat64()-sigma*sigma/2)
		w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("%s%d", kind, i), Kind: kind,
			Needs:   corral.Resources{CPUs: 1, MemoryMiB: 900},
			Runtime: time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)})
		for _, p := range parents {
			edges = append(edges, [2]int{p, i})
		}
		return i
	}
	ends := make([][]int, c.Subs)
	for sub := range c.Subs {
		var before, extracts, synths, peaks []int
		if sub >= c.UnderWay {
			before = ends[sub-c.UnderWay]
		}
		for range c.Extract {
			extracts = append(extracts, add("ExtractSGT", before...))
		}
		for k := range c.Synth {
			synths = append(synths, add("SeisSynth", extracts[k%len(extracts)]))
			peaks = append(peaks, add("PVCOkaya", synths[k]))
		}
		ends[sub] = []int{add("ZipSeis", synths...), add("ZipPeakSA", peaks...)}
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	return w
}

// F83: a run like that of Figure 6.2, with four hours on 800 processors at a utilization of 55 %, is planned at 80 % in
// at most 10 % more time.
func TestUtilisationOfCyberShake(t *testing.T) {
	text, err := os.ReadFile("testdata/cybershake.json")
	if err != nil {
		t.Fatal(err)
	}
	var c cyberShake
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	m := montecarlo.Model{Problem: plan.Problem{Work: c.work(t), Cluster: plan.Cluster{Hop: 2 * time.Millisecond,
		Rate: 1500}, Sites: []plan.Site{{
		Name: "hpc", Host: corral.Resources{CPUs: 8, MemoryMiB: 16_000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Hosts: 100, Pilots: plan.Unlimited, CPUs: c.Static, Walltime: 24 * time.Hour, Overhead: 100 * time.Second,
		Margin: 70 * time.Second, Wait: func(plan.Shape) time.Duration { return 0 }, Tariff: plan.CoreHours,
	}}}}
	static := baseline.Method{Name: "static", Every: time.Minute, New: func() baseline.Strategy {
		return baseline.Static{Pilots: c.Static / 8}
	}}
	shape := plan.Pilot{Site: "hpc",
		Shape: corral.Shape{Hosts: 1, CPUs: 8, MemoryMiB: 16_000, Walltime: corral.Seconds(24 * time.Hour)}}
	s := m.Scenario(&plan.Plan{}, 1)
	s.Control, s.Every = static.Control(baseline.Setting{Pilot: shape, Most: c.Static / 8}), static.Every
	held := m.Of(sim.Run(s))
	used := float64(held.Work) / float64(held.Held)
	t.Logf("%d tasks, %.0f core-hours of work; static %d: %s at %.1f %%", len(m.Work.Tasks), m.Work.CPUTime().Hours(),
		c.Static, held.Makespan.Round(time.Second), 100*used)
	if h := held.Makespan.Hours(); math.Abs(h/4-1) > 0.05 || math.Abs(used-0.55) > 0.02 {
		t.Errorf("static %d: %.2f h at %.1f %%, want 4 h ± 5 %% at 55 ± 2 %%", c.Static, h, 100*used)
	}
	begun := time.Now()
	pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Cost,
		Deadline: corral.Seconds(held.Makespan + held.Makespan/10)}, planner.Options{})
	if err != nil || !pl.Feasible {
		t.Fatalf("%v, %v", err, pl.Reasons)
	}
	took := time.Since(begun)
	came := m.Of(sim.Run(m.Scenario(pl, 1)))
	used = float64(came.Work) / float64(came.Held)
	longer := float64(came.Makespan)/float64(held.Makespan) - 1
	t.Logf("planned in %s: %d pilots, %s, %.1f %% used; played: %s (%+.1f %%) at %.1f %%", took.Round(time.Millisecond),
		len(pl.Pilots), pl.Makespan, 100*(1-pl.Waste), came.Makespan.Round(time.Second), 100*longer, 100*used)
	if !came.Finished || used < 0.80 || longer > 0.10 {
		t.Errorf("finished %v: %.1f %% used, %+.1f %% time; want 80 %% in at most 10 %% more", came.Finished, 100*used,
			100*longer)
	}
	for _, q := range pl.Pilots {
		if q.Walltime < corral.Seconds(10*time.Minute) || q.Ready-q.Start < corral.Seconds(100*time.Second) {
			t.Errorf("%+v: want a walltime of 10 min and an overhead of 100 s at least", q)
		}
	}
}
