package slotted_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

const (
	h            = time.Hour
	unit         = cost.Money(1_000_000)
	firstInstant = 3 * h
)

func all(int) bool { return true }

// edge returns a site with all processors free from the first instant on.
func edge(processors int) slotted.Site {
	return slotted.Site{Offer: slot.Offer{Site: "edge", At: firstInstant, Processors: processors,
		Slots: []slot.Slot{{Start: firstInstant, Length: 48 * h, Processors: processors, Price: unit, Divisible: true,
			Extensible: true}}}}
}

// The workflow of table 2 of the thesis has 8,039 tasks with 14,572.3 service units (F8). On an empty machine with 430
// processors its two long tasks run in sequence, its 4,017 seismograms run in ten rounds, and the workflow costs no
// more than that.
func TestSeismicHazard(t *testing.T) {
	t.Parallel()
	w := plantest.SeismicHazard(288)
	if got := slotted.Work(w, unit); len(w.Tasks) != 8039 || math.Abs(got.Units()-14572.3) > 0.1 {
		t.Errorf("%d tasks of %s SU", len(w.Tasks), got)
	}
	s, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{edge(430)}})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := s.Plan(all)
	if want := time.Duration(1+2100+2*86400+10*519+1) * time.Second; !ok || p.Makespan != want {
		t.Errorf("makespan %s, %v; want %s", p.Makespan, ok, want)
	}
	if p.Cost != s.LeastCost() || p.Cost != slotted.Work(w, unit) {
		t.Errorf("it costs %s, and at least %s", p.Cost, s.LeastCost())
	}
	if first := slotted.Order(slotted.Problem{Work: w})[0]; w.Tasks[first].Kind != "fd_grid_xyz" {
		t.Errorf("%s is first", w.Tasks[first].ID)
	}
}

// BenchmarkSeismicHazard evaluates one choice.
func BenchmarkSeismicHazard(b *testing.B) {
	s, err := slotted.New(slotted.Problem{Work: plantest.SeismicHazard(288), Sites: []slotted.Site{edge(430)}})
	if err != nil {
		b.Fatal(err)
	}
	for e := s.Evaluator(); b.Loop(); {
		e.Point(all)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	w := plantest.Levels(plantest.Grid{Tasks: 4, Levels: 2, Runtime: h, Processors: 4, Parents: 1}, 1)
	bad := edge(8)
	bad.Slots = []slot.Slot{{Processors: 1}}
	for _, c := range []struct {
		word string
		kind corral.Kind
		site slotted.Site
	}{
		{"no site offers a slot", corral.Unsatisfiable, slotted.Site{Offer: slot.Offer{Processors: 8}}},
		{"the largest site has 1", corral.Unsatisfiable, edge(1)},
		{"site edge, slot 1: the slot has no length", corral.Invalid, bad},
	} {
		_, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{c.site}})
		if corral.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.word) {
			t.Errorf("New = %v, want %s", err, c.word)
		}
	}
}

// Sources are asked in order; an offer whose instant differs from the others is rejected, and the error of a source is
// returned.
func TestAsk(t *testing.T) {
	t.Parallel()
	here, there := edge(8).Offer, edge(4).Offer
	sites, err := slotted.Ask(slot.Fixed(here), slot.Fixed(there))
	if err != nil || len(sites) != 2 || sites[0].Processors != 8 || sites[1].Processors != 4 {
		t.Errorf("Ask = %+v, %v", sites, err)
	}
	w := plantest.Levels(plantest.Grid{Tasks: 4, Levels: 2, Runtime: h, Processors: 2, Parents: 1}, 1)
	sites[1].At -= h
	if _, err := slotted.New(slotted.Problem{Work: w, Sites: sites}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("offers of two instants: %v", err)
	}
	down := errors.New("the site is down")
	if sites, err := slotted.Ask(slot.Fixed(here), broken{down}); sites != nil || !errors.Is(err, down) {
		t.Errorf("Ask = %+v, %v", sites, err)
	}
}

// broken is a source that fails.
type broken struct{ err error }

func (b broken) Offer() (slot.Offer, error) { return slot.Offer{}, b.err }

// problem generates a workflow and the offers of up to three sites. Some tasks take no time.
func problem(t *rapid.T) slotted.Problem {
	n := rapid.IntRange(1, 12).Draw(t, "tasks")
	var p slotted.Problem
	var edges [][2]int
	for i := range n {
		p.Work.Tasks = append(p.Work.Tasks, plan.Task{Runtime: time.Duration(rapid.IntRange(0, 4).Draw(t, "hours")) * h,
			Needs: corral.Resources{CPUs: rapid.IntRange(1, 4).Draw(t, "cpus")}})
		for range rapid.IntRange(0, 2).Draw(t, "parents") {
			if i > 0 {
				edges = append(edges, [2]int{rapid.IntRange(0, i-1).Draw(t, "parent"), i})
			}
		}
	}
	p.Work.Graph, _ = dag.New(n, edges)
	if rapid.Bool().Draw(t, "travels") {
		p.Transfer = func(int, int) time.Duration { return 30 * time.Minute }
	}
	for range rapid.IntRange(1, 3).Draw(t, "sites") {
		s := slotted.Site{Offer: slot.Offer{At: firstInstant, Processors: 4}}
		for range rapid.IntRange(1, 4).Draw(t, "slots") {
			one := slot.Slot{Start: firstInstant + time.Duration(rapid.IntRange(0, 9).Draw(t, "start"))*h,
				Length: time.Duration(rapid.IntRange(1, 9).Draw(t, "length")) * h, Price: unit,
				Processors: rapid.IntRange(1, 4).Draw(t, "processors")}
			one.Divisible = rapid.Bool().Draw(t, "open")
			one.Extensible = one.Divisible
			s.Slots = append(s.Slots, one)
		}
		p.Sites = append(p.Sites, s)
	}
	return p
}

// A schedule respects dependencies and transfer times, and no site runs more tasks at an instant than the chosen slots
// hold. The reservations contain the tasks, are part of chosen slots, and cost what the plan states, which is at least
// the cost of the tasks' processor time (F9, F10).
func TestPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		s, err := slotted.New(p)
		if err != nil {
			t.Fatal(err)
		}
		mask := rapid.IntRange(0, 1<<s.Slots()-1).Draw(t, "chosen")
		chosen := func(i int) bool { return mask>>i&1 == 1 }
		got, ok := s.Plan(chosen)
		e := s.Evaluator()
		e.Point(all) // must not affect the next evaluation
		if point, again := e.Point(chosen); again != ok || point != got.Point {
			t.Fatalf("%v, %v; and as a plan %v, %v", point, again, got.Point, ok)
		}
		if !ok {
			return
		}
		var end time.Duration
		for i, r := range got.Schedule {
			end = max(end, r.End)
			if r.Start < firstInstant || r.End-r.Start != p.Work.Tasks[i].Runtime {
				t.Fatalf("task %d runs from %s to %s", i, r.Start, r.End)
			}
			for _, parent := range p.Work.Graph.Parents(i) {
				after := got.Schedule[parent].End
				if got.Schedule[parent].Site != r.Site && p.Transfer != nil {
					after += p.Transfer(parent, i)
				}
				if r.Start < after {
					t.Fatalf("task %d starts at %s, before %s", i, r.Start, after)
				}
			}
		}
		if got.Makespan != end-firstInstant || got.Cost < slotted.Work(p.Work, unit) {
			t.Fatalf("%v for tasks that end at %s and take %s", got.Point, end, slotted.Work(p.Work, unit))
		}
		holds(t, p, got, func(site, slot int) bool {
			for k := range site {
				slot += len(p.Sites[k].Slots)
			}
			return chosen(slot)
		})
	})
}

// holds checks the reservations of a plan.
func holds(t *rapid.T, p slotted.Problem, got slotted.Plan, chosen func(site, slot int) bool) {
	var sum cost.Money
	for _, piece := range got.Pieces {
		c, err := p.Sites[piece.Site].Slots[piece.Slot].Cost(piece.Piece)
		if err != nil || !chosen(piece.Site, piece.Slot) {
			t.Fatalf("%+v: %v", piece, err)
		}
		sum += c
	}
	if sum != got.Cost {
		t.Fatalf("pieces cost %s, and the plan %s", sum, got.Cost)
	}
	for site := range p.Sites {
		for at := firstInstant; at < 100*h; at += 30 * time.Minute {
			busy, held := 0, 0
			for i, r := range got.Schedule {
				if r.Site == site && r.Start <= at && at < r.End {
					busy += p.Work.Tasks[i].Needs.CPUs
				}
			}
			for _, piece := range got.Pieces {
				if piece.Site == site && piece.Start <= at && at < piece.End() {
					held += piece.Processors
				}
			}
			if busy > held {
				t.Fatalf("%d processors are busy at site %d at %s, and %d held", busy, site, at, held)
			}
		}
	}
}

// A task is placed at the site where it starts first, or where it ends first if one site is faster; if the data
// transfer takes a long time, it is placed at its parent's site (F22).
func TestSites(t *testing.T) {
	t.Parallel()
	var p slotted.Problem
	for range 2 {
		p.Work.Tasks = append(p.Work.Tasks, plan.Task{Runtime: 2 * h, Needs: corral.Resources{CPUs: 1}})
	}
	p.Work.Graph, _ = dag.New(2, [][2]int{{0, 1}})
	fast := edge(1)
	fast.Slots[0].Start += h
	fast.Runtimes = []time.Duration{h / 2, h / 2}
	p.Sites = []slotted.Site{edge(1), fast}
	p.Transfer = func(int, int) time.Duration { return 10 * h }
	for transfer, want := range map[time.Duration]time.Duration{0: 2 * h, 10 * h: 2 * h} {
		p.Transfer = func(int, int) time.Duration { return transfer }
		s, err := slotted.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Plan(all); !ok || got.Makespan != want || got.Schedule[0].Site != 1 {
			t.Errorf("with %s of transfer it takes %s: %+v", transfer, got.Makespan, got.Schedule)
		}
	}
	p.Sites[1].Runtimes = nil
	s, _ := slotted.New(p)
	if got, _ := s.Plan(all); got.Schedule[0].Site != 0 || got.Schedule[1].Site != 0 {
		t.Errorf("where sites are alike the first start counts: %+v", got.Schedule)
	}
}

// Tasks whose total exceeds a Duration keep their order, and have no plan.
func TestAges(t *testing.T) {
	t.Parallel()
	var w plan.Work
	for range 3 {
		w.Tasks = append(w.Tasks, plan.Task{Runtime: 200 * 365 * 24 * h, Needs: corral.Resources{CPUs: 1}})
	}
	w.Graph, _ = dag.New(3, [][2]int{{2, 1}, {1, 0}})
	p := slotted.Problem{Work: w, Sites: []slotted.Site{edge(2)}}
	if got := slotted.Order(p); !slices.Equal(got, []int{2, 1, 0}) {
		t.Errorf("order %v", got)
	}
	s, err := slotted.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Plan(all); ok {
		t.Errorf("%v", got.Point)
	}
	w.Tasks[0].Needs.CPUs = math.MaxInt
	if got := slotted.Work(w, unit); got != math.MaxInt64 && got < 1<<40 {
		t.Errorf("they cost %s", got)
	}
}
