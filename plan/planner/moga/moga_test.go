package moga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// offered returns the scheduler of a workflow with the given number of tasks for the offer of a machine with 64
// processors at an instant.
func offered(t testing.TB, tasks int, at time.Duration) *slotted.Scheduler {
	t.Helper()
	m := queue.Machine{Processors: 64, Policy: queue.Conservative}
	q := queue.States(m, workload.Draw(600, 64, 0.7, 1), []time.Duration{at})[0]
	o, err := (&market.Advertiser{Name: "hpc", Queue: q, Price: 1_000_000}).Offer()
	if err != nil {
		t.Fatal(err)
	}
	w := plantest.Levels(plantest.Grid{Tasks: tasks, Levels: 5, Runtime: 1000 * time.Second, Processors: 6, Parents: 2}, 1)
	s, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{{Offer: o}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// exact returns the front over all choices.
func exact(p moga.Problem) []cost.Point {
	score := p.Evaluator()
	var all []cost.Point
	for mask := range 1 << p.Slots {
		if point, ok := score(moga.SetOf(p.Slots, func(i int) bool { return mask>>i&1 == 1 })); ok {
			all = append(all, point)
		}
	}
	var front []cost.Point
	for _, i := range cost.Pareto(all, nil) {
		front = append(front, all[i])
	}
	return front
}

// volume returns the area that a front dominates in the box up to twice the worst point of an exact front.
func volume(front, of []cost.Point) (sum float64) {
	right, top := 2*of[len(of)-1].Makespan.Seconds(), 2*of[0].Cost.Units()
	for _, p := range front {
		sum += max(0, right-p.Makespan.Seconds()) * max(0, top-p.Cost.Units())
		top = min(top, p.Cost.Units())
	}
	return sum
}

// If all choices can be tried, the search finds nearly the whole front: at least 98 % of the area that the exact front
// dominates (F13), and nothing beyond it.
func TestQuality(t *testing.T) {
	t.Parallel()
	tried, wide := 0, 0
	for k := range 40 {
		s := offered(t, 20, time.Duration(k)*5*time.Hour)
		if s.Slots() < 3 || s.Slots() > 8 {
			continue
		}
		p := moga.Slots(s)
		want := exact(p)
		front, _ := moga.Search(p, moga.Options{Seed: uint64(k), Published: true})
		got := points(front)
		if v := volume(got, want) / volume(want, want); v < 0.98 || v > 1 {
			t.Errorf("instant %d: %.3f of the exact front's volume", k, v)
		}
		for _, g := range got {
			noWorse := func(w cost.Point) bool { return w.Makespan <= g.Makespan && w.Cost <= g.Cost }
			if !slices.ContainsFunc(want, noWorse) {
				t.Errorf("instant %d: %v is better than all that is possible", k, g)
			}
		}
		if tried++; len(want) > 1 {
			wide++
		}
	}
	if tried < 10 || wide < 5 {
		t.Errorf("%d instants were tried, %d with a choice: too few say nothing", tried, wide)
	}
}

func points(f moga.Front) (all []cost.Point) {
	for _, m := range f {
		all = append(all, m.Point)
	}
	return all
}

// The same seed yields the same front, byte for byte, for any number of workers; a different seed may yield a different
// front (F35). If the cheapest choice is given, it is the last member of the front, and costs only the tasks' processor
// time.
func TestWorkers(t *testing.T) {
	t.Parallel()
	s := offered(t, 40, 40*time.Hour)
	o := moga.Options{Seed: 7, Generations: 4, Population: 40}
	var first string
	for _, o.Workers = range []int{1, 2, 7} {
		front, _ := moga.Search(moga.Slots(s), o)
		if got := fmt.Sprint(front); first == "" {
			first = got
		} else if got != first {
			t.Errorf("%d workers find %s, one %s", o.Workers, got, first)
		}
		if last := front[len(front)-1]; last.Cost != s.LeastCost() {
			t.Errorf("the cheapest costs %s of %s", last.Cost, s.LeastCost())
		}
	}
}

// No member of a front dominates or equals another, for any members in any order, and the front contains all members
// that are not dominated (F11).
func TestDominance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cost.Point {
			return cost.Point{Makespan: time.Duration(rapid.IntRange(0, 9).Draw(t, "makespan")),
				Cost: cost.Money(rapid.IntRange(0, 9).Draw(t, "cost"))}
		}), 2, 64).Draw(t, "points")
		bits := 6
		front, _ := moga.Search(moga.Problem{Slots: bits, Evaluator: func() func(moga.Set) (cost.Point, bool) {
			return func(chosen moga.Set) (cost.Point, bool) {
				if i := int(chosen[0]); i < len(all) {
					return all[i], true
				}
				return cost.Point{}, false // it would be better than all if it were feasible
			}
		}}, moga.Options{Population: 2000, Generations: -1})
		var want []cost.Point
		for _, i := range cost.Pareto(all, nil) {
			want = append(want, all[i])
		}
		if diff := cmp.Diff(want, points(front)); diff != "" {
			t.Fatalf("front of %v (-want +got):\n%s", all, diff)
		}
	})
}

// A search ends when its context is cancelled, before or during the search, and returns the cause.
func TestContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("the user has left")
	for after := range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		front, err := moga.Search(moga.Problem{Slots: 99, Evaluator: func() func(moga.Set) (cost.Point, bool) {
			return func(moga.Set) (cost.Point, bool) {
				if n++; n > after*150 {
					cancel(gone)
				}
				return cost.Point{}, true
			}
		}}, moga.Options{Workers: 1, Generations: 1_000_000, Context: ctx})
		if front != nil || !errors.Is(err, gone) || n > after*150+1 {
			t.Errorf("after %d evaluations: %v, %v", n, front, err)
		}
	}
}

// front has three points.
var front = moga.Front{
	{Point: cost.Point{Makespan: 10 * time.Hour, Cost: 100}},
	{Point: cost.Point{Makespan: 12 * time.Hour, Cost: 50}},
	{Point: cost.Point{Makespan: 20 * time.Hour, Cost: 40}},
}

func TestChoose(t *testing.T) {
	t.Parallel()
	goal := func(alpha string, deadline time.Duration, budget cost.Money) plan.Goal {
		share, _ := plan.ParseShare(alpha)
		g := plan.Goal{Objective: plan.Tradeoff, Tradeoff: share, Deadline: corral.Seconds(deadline)}
		if budget > 0 {
			g.Budget = &cost.Amount{Money: budget}
		}
		return g
	}
	for _, c := range []struct {
		goal plan.Goal
		want int
	}{
		{goal("0", 0, 0), 0}, {goal("0.1", 0, 0), 0}, {goal("0.5", 0, 0), 1}, {goal("0.9", 0, 0), 2}, {goal("1", 0, 0), 2},
		{goal("1", 12*time.Hour, 0), 1}, {goal("1", 11*time.Hour, 0), 0}, {goal("0", 0, 99), 1}, {goal("0", 0, 40), 2},
	} {
		got, err := front.Choose(c.goal)
		if err != nil || got.Point != front[c.want].Point {
			t.Errorf("Choose(%+v) = %v, %v; want %v", c.goal, got.Point, err, front[c.want].Point)
		}
	}
	for _, c := range []struct {
		front moga.Front
		goal  plan.Goal
		word  string
	}{
		{nil, goal("0", 0, 0), "no choice of the slots has room"},
		{front, goal("0", 13*time.Hour, 45), "the fastest takes 10h0m0s and costs 0.0001, the cheapest takes 20h0m0s"},
	} {
		_, err := c.front.Choose(c.goal)
		if corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), c.word) {
			t.Errorf("Choose = %v, want %s", err, c.word)
		}
	}
}

// The higher α, the lower the cost of the choice, and the longer its makespan (F15); the choice is a member of the
// front.
func TestTradeOff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f moga.Front
		p := cost.Point{Makespan: time.Hour, Cost: 1 << 40}
		for range rapid.IntRange(1, 10).Draw(t, "members") {
			f = append(f, moga.Member{Point: p})
			p.Makespan += time.Duration(rapid.Int64Range(1, 1e14).Draw(t, "longer"))
			p.Cost -= cost.Money(rapid.Int64Range(1, 1e10).Draw(t, "cheaper"))
		}
		last := f[0].Point
		for alpha := plan.Share(0); alpha <= plan.Whole; alpha += plan.Whole / 20 {
			m, err := f.Choose(plan.Goal{Objective: plan.Tradeoff, Tradeoff: alpha})
			if err != nil || m.Makespan < last.Makespan || m.Cost > last.Cost {
				t.Fatalf("α = %s: %v after %v, %v", alpha, m.Point, last, err)
			}
			last = m.Point
		}
		if last.Cost*100 > f[len(f)-1].Cost*101 {
			t.Fatalf("α = 1 chooses %v of %v", last, f)
		}
	})
}

// BenchmarkSearch measures a search of the thesis's size: 100 chromosomes, 10 generations, 100 tasks.
func BenchmarkSearch(b *testing.B) {
	s := offered(b, 100, 30*time.Hour)
	b.ReportMetric(float64(s.Slots()), "slots")
	for b.Loop() {
		if _, err := moga.Search(moga.Slots(s), moga.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
