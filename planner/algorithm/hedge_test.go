package algorithm_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner/algorithm"
	"github.com/corral-pilot/corral/planner/montecarlo"
	"github.com/corral-pilot/corral/sim"
)

// Each pilot has a second one at the other site where it is expected soonest, and as many tasks as before are where
// they were; it costs what the second one holds while it comes up. A site with too few cpus has none.
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
		if second.Site != "quick" || *second.Hedges != k || second.Submit != first.Submit || second.CPUs != first.CPUs ||
			time.Duration(second.Start-second.Submit) != 2*time.Hour || second.End != second.Ready {
			t.Errorf("%+v hedges %+v", second, first)
		}
		held += float64(second.HeldCPUs()) * time.Duration(second.End-second.Start).Hours()
	}
	if more := h.CoreHours - made.CoreHours; more < held-1e-6 || more > held+1e-6 {
		t.Errorf("it holds %.4f core-hours more, and the second pilots %.4f", more, held)
	}
	if came := sim.Run(algorithm.AsReserved(montecarlo.Model{Problem: *p}, h)); len(came.Pilots) != n {
		t.Errorf("%d pilots are played, want those that work", len(came.Pilots))
	}
	if one := algorithm.Hedge(alone.Model.Problem, made); len(one.Pilots) != n {
		t.Errorf("at one site there are %d pilots", len(one.Pilots))
	}
}

// A pilot that follows another stays at its site alone.
func TestFollowersAreNotHedged(t *testing.T) {
	t.Parallel()
	q := question(0)
	s := q.Model.Sites[0]
	s.Name = "other"
	q.Model.Sites = append(q.Model.Sites, s)
	first := 0
	made := &plan.Plan{Feasible: true, Pilots: []plan.Pilot{
		{Site: "site", Hosts: 1, CPUs: 1, Walltime: 3600e9, End: corral.Seconds(time.Hour)},
		{Site: "site", Hosts: 1, CPUs: 1, Walltime: 3600e9, End: corral.Seconds(time.Hour), Follows: &first},
	}}
	if h := algorithm.Hedge(q.Model.Problem, made); len(h.Pilots) != 2 {
		t.Errorf("%+v", h.Pilots)
	}
}
