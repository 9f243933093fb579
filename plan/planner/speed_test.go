package planner

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// slowly returns a cloud whose hosts take 1.5 times as long, at half the price.
func slowly() plan.Site {
	s := cloud()
	s.Name, s.Speed = "slow", corral.Speed(1/1.5)
	s.Tariff.Rate.Price /= 2
	return s
}

// TestSlowHostsNeedLonger: a site whose hosts are slower by a factor of 1.5 needs 1.5 times as long for the same tasks.
func TestSlowHostsNeedLonger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		site plan.Site
		want time.Duration
	}{{cloud(), 2 * time.Hour}, {slowly(), 3 * time.Hour}} {
		problem := plan.Problem{Work: stages(t, time.Hour, 5, 5), Sites: []plan.Site{c.site}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil || pl.Makespan != corral.Seconds(c.want) || pl.Waste != 0 {
			t.Errorf("site %s: %+v, %v; want %s and no waste", c.site.Name, pl, err, c.want)
		}
	}
}

// TestSlowHostsWhereThereIsTime: the deadline decides whether the slow, cheaper hosts suffice.
func TestSlowHostsWhereThereIsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deadline time.Duration
		want     string
	}{{2 * time.Hour, "cloud"}, {3 * time.Hour, "slow"}} {
		problem := plan.Problem{Work: stages(t, time.Hour, 5, 5), Sites: []plan.Site{cloud(), slowly()}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(c.deadline)}, Options{})
		if err != nil || !pl.Feasible {
			t.Fatalf("deadline %s: %+v, %v", c.deadline, pl, err)
		}
		for _, q := range pl.Pilots {
			if q.Site != c.want {
				t.Errorf("deadline %s: a pilot at %s, want all at %s", c.deadline, q.Site, c.want)
			}
		}
	}
}

// TestTooSlowForTheWalltime: a task that barely fits the walltime on fast hosts fits no pilot on slow ones.
func TestTooSlowForTheWalltime(t *testing.T) {
	t.Parallel()
	site := slowly()
	site.Walltime = 80 * time.Minute
	pl, err := Make(plan.Problem{Work: stages(t, time.Hour, 1), Sites: []plan.Site{site}},
		plan.Goal{Objective: plan.Makespan}, Options{})
	if err != nil || pl.Feasible {
		t.Errorf("%+v, %v; want no plan", pl, err)
	}
}

// TestSlowWorkersThatAreThere: the speed of hosts also applies to present pilots.
func TestSlowWorkersThatAreThere(t *testing.T) {
	t.Parallel()
	there := plan.Present{Site: "slow", Hosts: 1, Host: cloud().Host, Pace: plan.Pace{Speed: 0.5}, End: 10 * time.Hour, Keep: plan.Unbounded}
	f := Expect(plan.Problem{Work: stages(t, time.Hour, 1, 1), Present: []plan.Present{there}})
	if f.End != 4*time.Hour || f.Until[0] != 4*time.Hour {
		t.Errorf("%+v, want the end after 4h", f)
	}
}
