package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// Requirements on a planner from Juve's Resource management for scientific workflows (2012) that no other test covers.

// F7B: requests are for pilots with a number of cpus, a walltime and a submit time, within all limits of the site, and
// the total core-hours do not exceed the rest of the allocation.
func TestRequestsKeepTheLimitsOfSites(t *testing.T) {
	t.Parallel()
	left := cost.Money(70_000_000) // core-hours, in millionths
	s := cloud()
	s.Host.CPUs, s.Hosts, s.Pilots, s.CPUs, s.Walltime, s.Left = 4, 2, 3, 20, 3*time.Hour, &left
	s.Wait = func(plan.Shape) time.Duration { return 20 * time.Minute }
	problem := plan.Problem{Work: stages(t, time.Hour, 20, 3, 30), Sites: []plan.Site{s}}
	for _, objective := range []plan.Objective{plan.Makespan, plan.Cost, plan.CPUs} {
		pl, err := Make(problem, plan.Goal{Objective: objective, Deadline: corral.Seconds(24 * time.Hour)}, Options{})
		if err != nil || !pl.Feasible {
			t.Fatal(err, pl.Reasons)
		}
		var billed cost.Money
		for _, q := range pl.Pilots {
			_, m := s.Tariff.Bill(q)
			billed = billed.Plus(m)
			if q.CPUs > 4 || q.Hosts > 2 || time.Duration(q.Walltime) > s.Walltime || q.Submit < 0 ||
				q.End-q.Start > q.Walltime || q.Site != s.Name {
				t.Errorf("%s: %+v", objective, q)
			}
			beside, cpus := 0, 0
			for _, r := range pl.Pilots {
				if r.Submit <= q.Submit && q.Submit < r.End {
					beside++
				}
				if r.Start <= q.Start && q.Start < r.End {
					cpus += r.HeldCPUs()
				}
			}
			if beside > s.Pilots || cpus > s.CPUs {
				t.Errorf("%s: %d pilots and %d cpus at once", objective, beside, cpus)
			}
		}
		if billed > left || billed != pl.Cost.Money {
			t.Errorf("%s: %s of %s", objective, cost.Amount{Money: billed, Unit: cost.CPUHours}, cost.Amount{Money: left})
		}
	}
}

// F7C: a pilot is submitted ahead of its need by a quantile of the waits of its shape, which is given here: cpus × 5
// minutes. The first pilots are submitted at once.
func TestPilotsAreSubmittedAQuantileBeforeTheyAreNeeded(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.Wait = func(shape plan.Shape) time.Duration {
		return time.Duration(shape.Hosts*shape.Host.CPUs) * 5 * time.Minute
	}
	problem := plan.Problem{Work: stages(t, time.Hour, 1, 6), Sites: []plan.Site{s}}
	pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Shape: 1})
	if err != nil || !pl.Feasible || len(pl.Pilots) < 2 {
		t.Fatalf("%+v, %v", pl, err)
	}
	for i, q := range pl.Pilots {
		shape := plan.Shape{Hosts: q.Hosts, Host: q.Host(), Walltime: time.Duration(q.Walltime)}
		if q.Start-q.Submit != corral.Seconds(s.Wait(shape)) || i == 0 && q.Submit != 0 || i > 0 && q.Submit == 0 {
			t.Errorf("pilot %d: submitted at %s, expected at %s", i, q.Submit, q.Start)
		}
	}
}

// F7D, for one workflow: over a grid of budgets and deadlines each plan either reports its makespan and cost, which are
// within both bounds, or is refused with the one necessary change and the nearest feasible plan. Higher bounds never
// increase the cost.
func TestWhatIfOverBudgetsAndDeadlines(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, time.Hour, 5, 1, 5), Sites: []plan.Site{cloud()}}
	accepted := 0
	for _, hours := range []int{2, 3, 4, 6, 11} {
		for _, budget := range []cost.Money{5, 11, 13, 20} {
			goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(time.Duration(hours) * time.Hour),
				Budget: &cost.Amount{Money: budget * 1_000_000, Unit: cost.CPUHours}}
			pl, err := Make(problem, goal, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if possible := hours >= 3 && budget >= 11; pl.Feasible != possible {
				t.Errorf("%d h, %d ch: %v, %v", hours, budget, pl.Feasible, pl.Reasons)
			}
			if !pl.Feasible {
				if pl.Nearest == nil || len(pl.Nearest.Schedule) != 11 || !strings.HasSuffix(pl.Reasons[0], "is within reach") {
					t.Errorf("%d h, %d ch: refused because %q", hours, budget, pl.Reasons)
				}
				continue
			}
			accepted++
			if len(pl.Schedule) != 11 || pl.Makespan > goal.Deadline || pl.Cost.Money > goal.Budget.Money ||
				pl.Cost.Money != 11_000_000 || len(pl.Reasons) == 0 {
				t.Errorf("%d h, %d ch: %d tasks, %s, %s, %q", hours, budget, len(pl.Schedule), pl.Makespan, pl.Cost, pl.Reasons)
			}
		}
	}
	if accepted != 4*3 {
		t.Errorf("%d of the grid are accepted", accepted)
	}
}

// F9C: no plan of the front dominates another; ties are merged.
func TestTheFrontIsNotDominated(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.Overhead = 10 * time.Minute
	problem := plan.Problem{Work: stages(t, 25*time.Minute, 3, 9, 1, 6), Sites: []plan.Site{s}}
	pl, err := Make(problem, plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, Options{})
	if err != nil || len(pl.Front) < 2 {
		t.Fatalf("%+v, %v", pl, err)
	}
	var points []cost.Point
	for _, p := range pl.Front {
		points = append(points, cost.Point{Makespan: time.Duration(p.Makespan), Cost: cost.Money(p.CoreHours * 1e6)})
	}
	if front := cost.Pareto(points, nil); len(front) != len(points) {
		t.Errorf("of %+v, %v are not dominated", pl.Front, front)
	}
}

// No plan requests more cpus than the cluster can keep busy: with ten starts per second and tasks of two seconds the
// limit is 20 cpus, for any site and any goal. Plans may exceed this by a fifth, because not every number is tried.
func TestNoPlanAsksForMoreCPUsThanCanBeFed(t *testing.T) {
	t.Parallel()
	problem := plan.Problem{Work: stages(t, 2*time.Second, 1, 600), Sites: []plan.Site{cloud()},
		Cluster: plan.Cluster{Rate: 10}}
	none := clustering.Rule{}
	for _, objective := range []plan.Objective{plan.Makespan, plan.Cost, plan.Tradeoff} {
		pl, err := Make(problem, plan.Goal{Objective: objective, Tradeoff: plan.Whole / 2}, Options{Shape: 1, Clustering: &none})
		if err != nil || !pl.Feasible {
			t.Fatal(err, pl.Reasons)
		}
		if pl.PeakCPUs > 24 {
			t.Errorf("%s: %d cpus at once", objective, pl.PeakCPUs)
		}
		if objective == plan.Makespan && pl.PeakCPUs < 19 {
			t.Errorf("%d cpus, and 20 can be fed", pl.PeakCPUs)
		}
	}
}
