package main

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/plantest"
)

// Unknown names are refused.
func TestExecute(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"-only", "figures"}, &out, &errs); code != 2 {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// A ratio is the ratio of means, and equal pairs have an interval of width 0.
func TestRatio(t *testing.T) {
	t.Parallel()
	var same, apart []pair
	for i := range 30 {
		best := time.Duration(1+i%3) * time.Hour
		same = append(same, pair{cost.Point{Makespan: best / 2}, cost.Point{Makespan: best}})
		odd := time.Duration(i%2) * time.Hour
		apart = append(apart, pair{cost.Point{Makespan: odd}, cost.Point{Makespan: time.Hour}})
	}
	if r := ratioOf(same, makespans); r.value != 0.5 || r.high-r.low > 1e-12 {
		t.Errorf("%v", r)
	}
	// The mean of 30 zeros and ones has a standard error of ½ ÷ √29.
	if r := ratioOf(apart, makespans); r.value != 0.5 || math.Abs(r.high-0.5-2.05*0.5/math.Sqrt(29)) > 1e-9 {
		t.Errorf("%v", r)
	}
}

// Without traces jobs are drawn. A second copy adds load, and a longer time between arrivals reduces it. At each
// instant a plan is compared with best effort, and at the least cost it costs the same.
func TestCompare(t *testing.T) {
	t.Parallel()
	d := &desk{data: t.TempDir()}
	base, err := d.lublin(256)
	if err != nil {
		t.Fatal(err)
	}
	base.Processors = 600 // with the 256 processors for which they are drawn, they would never end
	base.jobs = base.jobs[:3000]
	for _, load := range []float64{0.2, 0.6} {
		if got := base.loaded(load).load(); math.Abs(got-load) > 0.06 {
			t.Errorf("a load of %g is asked for, and it is %g", load, got)
		}
	}
	var cases []instance
	for k, q := range base.loaded(0.6).states(3) {
		g := plantest.Grid{Tasks: 20, Levels: 4, Runtime: time.Hour, Processors: 30, Parents: 2}
		c, err := at(plantest.Levels(g, uint64(k)), q)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	all, err := compare(cases, moga.Options{Population: 20, Generations: 2}, alphas...)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v: %v", all, err)
	}
	for _, p := range all[alphas[2]] {
		if p.plan.Cost != p.best.Cost {
			t.Errorf("the cheapest costs %s, and best effort %s", p.plan.Cost, p.best.Cost)
		}
	}
}
