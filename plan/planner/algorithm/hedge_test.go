package algorithm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

// For each pilot there is a second pilot at the other site where it is expected first, and tasks stay where they were;
// the additional cost is the start-up of the second pilots. A site with too few cpus gets no second pilot.
func TestHedge(t *testing.T) {
	t.Parallel()
	q := question(3)
	p := &q.Model.Problem
	p.Sites[0].Room, q.Model.Queues = nil, nil
	for _, other := range []struct {
		name string
		wait time.Duration
		cpus int
	}{{"slow", 3 * time.Hour, processors}, {"quick", 2 * time.Hour, processors}, {"small", 0, 1}} {
		s := p.Sites[0]
		s.Name, s.CPUs, s.Wait = other.name, other.cpus, func(plan.Shape) time.Duration { return other.wait }
		p.Sites = append(p.Sites, s)
	}
	q.Options.Shape = 7
	alone := q
	alone.Model.Sites = p.Sites[:1]
	made, err := alone.Make(t.Context(), plan.Staircase)
	if err != nil || !made.Feasible {
		t.Fatalf("%+v, %v", made, err)
	}
	h := algorithm.Hedge(*p, made)
	n, held := len(made.Pilots), 0.0
	if len(h.Pilots) != 2*n || len(plan.Hedged(h.Pilots)) != n || h.Makespan != made.Makespan {
		t.Fatalf("%d pilots instead of %d, reasons %q", len(h.Pilots), n, h.Reasons)
	}
	for k, second := range h.Pilots[n:] {
		first := h.Pilots[k]
		if second.Site != "quick" || *second.Hedges != k || second.CPUs != first.CPUs || second.Submit < first.Submit ||
			time.Duration(second.Start-second.Submit) != 2*time.Hour || second.Start < first.Start ||
			second.End != second.Ready {
			t.Errorf("%+v hedges %+v", second, first)
		}
		held += float64(second.HeldCPUs()) * time.Duration(second.End-second.Start).Hours()
	}
	if more := h.CoreHours - made.CoreHours; more < held-1e-6 || more > held+1e-6 {
		t.Errorf("it holds %.4f core-hours more, and the second pilots %.4f", more, held)
	}
	if came := sim.Run(montecarlo.Model{Problem: *p}.AsPlanned(h)); len(came.Pilots) != n {
		t.Errorf("%d pilots are played, want those that work", len(came.Pilots))
	}
	if one := algorithm.Hedge(alone.Model.Problem, made); len(one.Pilots) != n {
		t.Errorf("at one site there are %d pilots", len(one.Pilots))
	}
}

// two returns a plan of two pilots with four cpus at site a, which work for an hour from the third hour on, and a
// problem that also contains a site b.
func two(change func(b *plan.Site)) (plan.Problem, *plan.Plan) {
	q := question(0)
	a := q.Model.Sites[0]
	a.Name, a.Room = "a", nil
	b := a
	b.Name, b.Overhead = "b", 0
	change(&b)
	p := plan.Problem{Sites: []plan.Site{a, b}}
	p.Work.Graph, _ = dag.New(0, nil)
	made := &plan.Plan{Feasible: true, Point: plan.Point{Cost: cost.Amount{Unit: cost.CPUHours}}}
	for range 2 {
		made.Pilots = append(made.Pilots, plan.Pilot{Site: "a",
			Shape:  corral.Shape{Hosts: 1, CPUs: 4, Walltime: corral.Seconds(2 * time.Hour)},
			Submit: corral.Seconds(time.Hour), Start: corral.Seconds(2 * time.Hour),
			Ready: corral.Seconds(2*time.Hour + 10*time.Second), End: corral.Seconds(3 * time.Hour)})
	}
	return p, made
}

// Second pilots use separate parts of the room, need the site's cpus for as long as the first pilots work, and are not
// requested if the total may exceed the budget or the rest of the site's allocation.
func TestHedgesKeepLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*plan.Site)
		budget *cost.Amount
		want   int
		says   string
	}{
		{"two have room", func(*plan.Site) {}, nil, 2, "2 of 2 pilots"},
		{"one has room, and the other waits", func(b *plan.Site) { b.Room = slot.NewProfile(4, 0) }, nil, 2, "2 of 2 pilots"},
		{"the site gives cpus for one", func(b *plan.Site) { b.CPUs = 4 }, nil, 1, "1 of 2 pilots"},
		{"what is left allows one", func(b *plan.Site) { left := cost.Money(5_000_000); b.Left = &left }, nil, 1, "1 of 2 pilots"},
		{"it is ten times as dear, and within the budget", dear, &cost.Amount{Money: 81_000_000, Unit: cost.CPUHours}, 2,
			"at most 80.022ch"},
		{"it is ten times as dear, and over the budget", dear, &cost.Amount{Money: 79_000_000, Unit: cost.CPUHours}, 0,
			"not hedged: if the second ones do the work, it may cost 80.022ch"},
	} {
		p, made := two(tc.change)
		made.Goal.Budget = tc.budget
		h := algorithm.Hedge(p, made)
		if n := len(h.Pilots) - 2; n != tc.want || !strings.Contains(strings.Join(h.Reasons, "\n"), tc.says) {
			t.Errorf("%s: %d second pilots, %q", tc.name, n, h.Reasons)
		}
	}
}

// A second pilot at a site whose queue is full is later than it can save, and is not requested there, although past
// pilots did not wait: 1,976 jobs are ahead of it.
func TestSecondPilotsAreInTime(t *testing.T) {
	t.Parallel()
	full := func(until time.Duration) func(b *plan.Site) {
		return func(b *plan.Site) {
			b.Room = slot.NewProfile(processors, 0)
			b.Room.Take(0, until, processors)
			b.Wait = func(plan.Shape) time.Duration { return 0 }
		}
	}
	for _, tc := range []struct {
		until time.Duration // the other queue is full
		want  int
		says  string
	}{
		{100 * time.Hour, 0, "the second one at b would be ready 97h59m50s after the first one at a, of which 9 in 10 are " +
			"at most 30m0s late"},
		{2*time.Hour + 40*time.Minute, 0, "ready 39m50s after"},
		{2*time.Hour + 30*time.Minute, 2, "2 of 2 pilots"},
	} {
		p, made := two(full(tc.until))
		p.Sites[0].Waits = func(_ plan.Shape, share float64) time.Duration {
			return time.Duration(share*75) * time.Minute // 30 minutes between the median and 9 in 10
		}
		h := algorithm.Hedge(p, made)
		if n := len(h.Pilots) - 2; n != tc.want || !strings.Contains(strings.Join(h.Reasons, "\n"), tc.says) {
			t.Errorf("full until %s: %d second pilots, %q", tc.until, n, h.Reasons)
		}
	}
}

func dear(b *plan.Site) { b.Tariff.Rate.Price *= 10 }

// A pilot that follows another is not hedged.
func TestFollowersAreNotHedged(t *testing.T) {
	t.Parallel()
	q := question(0)
	s := q.Model.Sites[0]
	s.Name = "other"
	q.Model.Sites = append(q.Model.Sites, s)
	first := 0
	made := &plan.Plan{Feasible: true, Pilots: []plan.Pilot{
		{Site: "site", Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: 3600e9}, End: corral.Seconds(time.Hour)},
		{Site: "site",
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: 3600e9},
			End:   corral.Seconds(time.Hour), Follows: &first},
	}}
	if h := algorithm.Hedge(q.Model.Problem, made); len(h.Pilots) != 2 {
		t.Errorf("%+v", h.Pilots)
	}
}
