package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/dag"
)

// stages returns a workflow of levels with tasks of equal runtime; each task depends on all tasks of the previous
// level.
func stages(t *testing.T, runtime time.Duration, widths ...int) plan.Work {
	t.Helper()
	var w plan.Work
	var edges [][2]int
	var before []int
	for level, width := range widths {
		var now []int
		for range width {
			i := len(w.Tasks)
			w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("t%d.%d", level, i), Needs: corral.Resources{CPUs: 1},
				Runtime: runtime})
			for _, parent := range before {
				edges = append(edges, [2]int{parent, i})
			}
			now = append(now, i)
		}
		before = now
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	return w
}

// cloud returns a site without limits, waits and overheads.
func cloud() plan.Site {
	const much = plan.Unlimited
	return plan.Site{Name: "cloud", Host: corral.Resources{CPUs: 1, MemoryMiB: much, GPUs: much, DiskMiB: much},
		Hosts:  1,
		Pilots: much, CPUs: much, Walltime: plan.Unbounded, Wait: func(plan.Shape) time.Duration { return 0 },
		Tariff: plan.Tariff{Rate: plan.CoreHours.Rate, Billing: cost.Billing{Period: time.Hour}}}
}

// Pilots are kept through a pause within the period that is paid for anyway, instead of paying for another.
func TestPilotsStayWhileTheyArePaidFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		each time.Duration
		want float64 // cpu-hours
	}{{10 * time.Minute, 5}, {20 * time.Minute, 5}, {30 * time.Minute, 10}, {time.Hour, 11}} {
		pl, err := Make(plan.Problem{Work: stages(t, tt.each, 5, 1, 5), Sites: []plan.Site{cloud()}},
			plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil || pl.Cost.Money.Units() != tt.want || pl.Makespan != corral.Seconds(3*tt.each) {
			t.Errorf("tasks of %s: %s for %s, %v; want %g", tt.each, pl.Makespan, pl.Cost, err, tt.want)
		}
	}
}

// F70, Juve 2012, Figure 6.1: levels of five tasks, one task, and five tasks, each of which takes an hour.
func TestStaircaseOfFigure61(t *testing.T) {
	pl, err := Make(plan.Problem{Work: stages(t, time.Hour, 5, 1, 5), Sites: []plan.Site{cloud()}},
		plan.Goal{Objective: plan.Makespan}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pl.CoreHours != 11 || pl.Makespan != corral.Seconds(3*time.Hour) || pl.Waste != 0 || pl.PeakCPUs != 5 {
		t.Errorf("%+v", pl)
	}
	for hour, want := range []int{5, 1, 5} {
		slots := 0
		for _, q := range pl.Pilots {
			if at := corral.Seconds(time.Duration(hour) * time.Hour); q.Start <= at && at < q.End {
				slots += q.HeldCPUs()
			}
		}
		if slots != want {
			t.Errorf("in hour %d %d slots, want %d", hour+1, slots, want)
		}
	}
}

// A plan that will be revised has pilots that can be released separately: no pilot has more than its part of the hosts,
// unless the site limits the number of pilots.
func TestPilotsThatCanBeLetGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ parts, most, want int }{
		{0, plan.Unlimited, 1}, {4, plan.Unlimited, 4}, {100, plan.Unlimited, 8}, {4, 2, 1},
	} {
		s := cloud()
		s.CPUs, s.Host.CPUs, s.Hosts, s.Pilots = 8, 1, 8, tt.most
		problem := plan.Problem{Work: stages(t, time.Hour, 8), Sites: []plan.Site{s}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Parts: tt.parts})
		if err != nil || !pl.Feasible || len(pl.Pilots) != tt.want || pl.PeakCPUs != 8 {
			t.Errorf("%d parts, %d pilots at most: %+v, %v, want %d pilots", tt.parts, tt.most, pl.Pilots, err, tt.want)
		}
	}
}

// The whole host of a site with small hosts is tried beside sites with larger hosts: where hosts have a price, a part of
// one costs as much as all of it.
func TestWholeHostsOfEachSite(t *testing.T) {
	t.Parallel()
	small, large := cloud(), cloud()
	small.Name, small.Host.CPUs = "small", 6
	small.Tariff.Rate.Per = cost.HostHour
	large.Name, large.Host.CPUs = "large", 32
	large.Tariff.Rate.Price *= 5
	pl, err := Make(plan.Problem{Work: stages(t, time.Hour, 36), Sites: []plan.Site{small, large}},
		plan.Goal{Objective: plan.Cost}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if q := pl.Pilots[0]; q.Site != "small" || q.CPUs != 6 {
		t.Errorf("%+v; want hosts of 6 cpus", q)
	}
}
