package profile_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/profile"
)

// values holds the measurements of a task by metric.
type values = map[profile.Metric]float64

// sample returns a sample of transformation t; the last arguments are pairs of a metric and its value.
func sample(run, id, t string, level int, measured values) profile.Sample {
	s := profile.Sample{Subject: profile.Subject{Transformation: t, Level: level}, Run: run, ID: id}
	for m, v := range measured {
		s.Values.Set(m, v)
	}
	return s
}

// runtimes returns a sample of transformation t for each runtime.
func runtimes(run, t string, level int, seconds ...float64) []profile.Sample {
	var all []profile.Sample
	for i, s := range seconds {
		id := fmt.Sprintf("%s/%d/%d", t, level, i)
		all = append(all, sample(run, id, t, level, values{profile.Runtime: s}))
	}
	return all
}

func of(t testing.TB, samples ...[]profile.Sample) *profile.Profile {
	t.Helper()
	p, err := profile.Of(slices.Concat(samples...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestProfileByHand(t *testing.T) {
	t.Parallel()
	p := of(t, []profile.Sample{
		sample("a", "1", "map", 0, values{profile.Runtime: 2, profile.CPU: 3, profile.Memory: 100}),
		sample("a", "2", "map", 0, values{profile.Runtime: 4, profile.CPU: 2}),
		sample("a", "3", "map", 0, values{profile.Runtime: 0, profile.CPU: 0}),
	})
	classes := p.Classes()
	if len(classes) != 1 || classes[0].Level != profile.AllLevels || classes[0].Count() != 3 {
		t.Fatalf("Classes = %+v, want one of 3 tasks", classes)
	}
	c := classes[0]
	for m, want := range map[profile.Metric]profile.Stat{
		profile.Runtime:     {Count: 3, Mean: 2, SD: 2, Min: 0, Max: 4, Ranged: true}, // 0 was measured
		profile.Utilization: {Count: 2, Mean: 1, SD: math.Sqrt(0.5), Min: 0.5, Max: 1.5, Ranged: true},
		profile.Memory:      {Count: 1, Mean: 100, Min: 100, Max: 100, Ranged: true},
		profile.Read:        {},
	} {
		if got := c.Stat(m); !cmp.Equal(got, want, cmp.Comparer(near)) {
			t.Errorf("%s: %+v, want %+v", m, got, want)
		}
	}
	got := c.Quantiles(profile.Runtime, 0, 0.25, 0.5, 0.9, 1)
	if want := []float64{0, 1, 2, 3.6, 4}; !slices.EqualFunc(got, want, near) {
		t.Errorf("quantiles of 0, 2, 4 = %v", got)
	}
	if got := c.Quantiles(profile.Read, 0.5); got != nil {
		t.Errorf("quantiles of what was not measured = %v", got)
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	p := profile.New()
	bad := []profile.Sample{
		sample("r", "1", "", 0, values{profile.CPU: 1}),
		sample("r", "1", "line\nbreak", 0, values{profile.CPU: 1}),
		sample("r", "1", "map", 0, nil),
		sample("r", "1", "map", -2, values{profile.CPU: 1}),
		{Subject: profile.Subject{Transformation: string([]byte{0xff})}},
	}
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		bad = append(bad, sample("r", "1", "map", 0, values{profile.Read: v}))
	}
	for _, s := range bad {
		if err := p.Add(s); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Add(%+v) = %v, want an error of kind invalid", s, err)
		}
	}
	if len(p.Classes()) != 0 || len(p.Runs()) != 0 {
		t.Errorf("what was refused left %v, %v", p.Classes(), p.Runs())
	}
}

// Levels are kept apart if they differ, by a test that is not misled by the number of tasks.
func TestClassesDivideLevelsThatDiffer(t *testing.T) {
	t.Parallel()
	many := func(level, n int, mean, spread float64) []profile.Sample {
		var s []float64
		for i := range n {
			s = append(s, mean+spread*float64(i%5-2))
		}
		return runtimes("r", "mAdd", level, s...)
	}
	undivided := []int{profile.AllLevels}
	for name, c := range map[string]struct {
		a, b   []profile.Sample
		levels []int
	}{
		"one level":                {many(3, 20, 100, 5), nil, undivided},
		"16 tiles and one mosaic":  {many(6, 16, 250, 10), many(8, 1, 800, 0), []int{6, 8}},
		"many tasks, small effect": {many(1, 5000, 100, 10), many(2, 5000, 103, 10), undivided},
		"too few to tell":          {many(1, 4, 100, 1), many(2, 1, 800, 0), undivided},
		"the same at both":         {many(1, 20, 100, 0), many(2, 20, 100, 0), undivided},
		"no spread at either":      {many(1, 20, 100, 0), many(2, 20, 200, 0), []int{1, 2}},
	} {
		var got []int
		for _, class := range of(t, c.a, c.b).Classes() {
			got = append(got, class.Level)
		}
		if !slices.Equal(got, c.levels) {
			t.Errorf("%s: classes of levels %v, want %v", name, got, c.levels)
		}
	}
	var chain []profile.Sample
	for level := range 100 {
		chain = append(chain, runtimes("r", "step", level, float64(level))...)
	}
	if classes := of(t, chain).Classes(); len(classes) != 1 || classes[0].Count() != 100 {
		t.Errorf("a chain of 100 has %d classes", len(classes))
	}
}

// drawSamples draws samples of two transformations on a few levels and in three runs.
func drawSamples(t *rapid.T) []profile.Sample {
	n := rapid.IntRange(1, 60).Draw(t, "n")
	var all []profile.Sample
	for i := range n {
		s := sample(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "run"), fmt.Sprint(i),
			rapid.SampledFrom([]string{"map", "reduce"}).Draw(t, "name"), rapid.IntRange(-1, 3).Draw(t, "level"), nil)
		for _, m := range []profile.Metric{profile.Runtime, profile.CPU, profile.Memory, profile.Input} {
			if rapid.Bool().Draw(t, "measured") {
				s.Values.Set(m, rapid.Float64Range(0, 1e6).Draw(t, "value"))
			}
		}
		s.Values.Set(profile.Written, 0)
		all = append(all, s)
	}
	return all
}

// A merge of the profiles of runs, in any order, equals the profile of all samples, in any order, apart from rounding.
func TestMergeEqualsTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(t)
		whole, err := profile.Of(samples)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]*profile.Profile{}
		for _, s := range rapid.Permutation(samples).Draw(t, "order") {
			if parts[s.Run] == nil {
				parts[s.Run] = profile.New()
			}
			if err := parts[s.Run].Add(s); err != nil {
				t.Fatal(err)
			}
		}
		merged := profile.New()
		for _, run := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "runs") {
			if parts[run] == nil {
				continue
			}
			if err := merged.Merge(parts[run]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(view(whole), view(merged), cmp.Comparer(near)); diff != "" {
			t.Errorf("of all samples, and merged:\n%s", diff)
		}
		if err := merged.Merge(whole); corral.KindOf(err) != corral.Conflict {
			t.Errorf("merging a run twice: %v", err)
		}
	})
}

type classView struct {
	Name    string
	Level   int
	Stats   []profile.Stat
	Samples []string
}

// view returns the visible data of a profile.
func view(p *profile.Profile) []classView {
	var all []classView
	for _, c := range p.Classes() {
		v := classView{Name: c.Transformation, Level: c.Level}
		for m := profile.Runtime; m <= profile.Virtual; m++ {
			v.Stats = append(v.Stats, c.Stat(m))
		}
		for _, s := range c.Samples() {
			v.Samples = append(v.Samples, s.Run+"/"+s.ID)
		}
		all = append(all, v)
	}
	return all
}

// Only some of many samples are kept, but the same ones in any order, and quantiles change only slightly.
func TestQuantilesOfManySamples(t *testing.T) {
	t.Parallel()
	const n = 50_000
	var samples []profile.Sample
	for i := range n {
		s := sample("r", fmt.Sprint(i), "map", 0, values{profile.Runtime: float64(i)})
		samples = append(samples, s)
	}
	forward := of(t, samples).Classes()[0]
	slices.Reverse(samples)
	backward := of(t, samples).Classes()[0]
	if n := len(forward.Samples()); n != profile.MaxSamples {
		t.Errorf("%d samples were kept", n)
	}
	if diff := cmp.Diff(forward.Samples(), backward.Samples(), cmp.AllowUnexported(profile.Values{})); diff != "" {
		t.Errorf("others were kept in another order: %s", diff)
	}
	qs := []float64{0.1, 0.5, 0.9, 0.99}
	for i, got := range forward.Quantiles(profile.Runtime, qs...) {
		if want := qs[i] * n; math.Abs(got-want) > 0.025*n {
			t.Errorf("quantile %v = %v, want about %v", qs[i], got, want)
		}
	}
	if s := forward.Stat(profile.Runtime); s.Max != n-1 || s.Count != n || !near(s.Mean, (n-1)/2.0) {
		t.Errorf("Stat = %+v: it is of all samples", s)
	}
}

func TestSamplesOfAWorkflow(t *testing.T) {
	t.Parallel()
	g, err := dag.New(5, [][2]int{{0, 1}, {0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	w := &workflow.Workflow{
		Graph: g, FileSizes: map[string]int64{"in": 10, "other": 5},
		Machines: []workflow.Machine{{Name: "node1", Arch: "x86_64", CPU: workflow.CPU{Cores: 8, SpeedMHz: 2600}}},
		Tasks: []workflow.Task{
			{
				ID: "ID1", Name: "split", Inputs: []string{"in", "other"},
				Execution: workflow.Execution{
					Runtime: 2 * time.Second, CPUTime: time.Second, MemoryBytes: 7, Worker: "node1",
				},
			},
			{
				ID: "map_ID01", Name: "map_ID01", Argv: []string{"/opt/bin/mapper", "-x"},
				Inputs:    []string{"in", "not known"},
				Execution: workflow.Execution{Worker: "node2"}, // too fast for the clock
			},
			{ID: "map_ID02", Name: "map_ID02"}, // did not run
			{
				ID: "x_ID03", Name: "x_ID03", Argv: []string{"set -e\ncat x"}, // a script
				Execution: workflow.Execution{Runtime: 1},
			},
			{ID: "x_IDle", Name: "x_IDle", Execution: workflow.Execution{Runtime: 1}},
		},
	}
	rt, in := profile.Runtime, profile.Input
	want := []profile.Sample{
		sample("r", "ID1", "split", 0, values{rt: 2, profile.CPU: 1, profile.Memory: 7, in: 15}),
		sample("r", "map_ID01", "mapper", 1, values{rt: 0}),
		sample("r", "x_ID03", "x", 0, values{rt: 1e-9, in: 0}),
		sample("r", "x_IDle", "x_IDle", 0, values{rt: 1e-9, in: 0}),
	}
	want[0].Host = "x86_64 8 cores"
	if diff := cmp.Diff(want, profile.Samples(w, "r"), cmp.AllowUnexported(profile.Values{})); diff != "" {
		t.Error(diff)
	}
}
