package revision_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// TestBoundsOfThePlan: pilots that a revision adds are within the bounds of the plan, together with its other pilots.
func TestBoundsOfThePlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		bounds plan.Bounds
		cpus   int // of the added pilots
		pilots int
		from   time.Duration // the first submission
		news   revision.News
	}{
		{"none", plan.Bounds{}, 3, 1, time.Minute, revision.Nothing},
		{"cpus", plan.Bounds{MaxCPUs: 2}, 1, 1, time.Minute, revision.Late},
		{"cpus that are held", plan.Bounds{MaxCPUs: 1}, 0, 0, 0, revision.Late},
		{"one more pilot", plan.Bounds{MaxPilots: 2}, 3, 1, time.Minute, revision.Nothing},
		{"no more pilots", plan.Bounds{MaxPilots: 1}, 0, 0, 0, revision.Late},
		{"later", plan.Bounds{NotBefore: corral.Seconds(3 * time.Minute)}, 3, 1, 3 * time.Minute, revision.Nothing},
	} {
		v := scene(t)
		v.Goal.Deadline, v.Goal.Bounds, v.Promise = corral.Seconds(15*time.Minute), c.bounds, 14*time.Minute
		d, err := revision.Decide(v)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		cpus, from := 0, time.Duration(0)
		for i, q := range d.Add {
			if cpus += q.HeldCPUs(); i == 0 {
				from = time.Duration(q.Submit)
			}
		}
		if cpus != c.cpus || len(d.Add) != c.pilots || from != c.from || d.News != c.news {
			t.Errorf("%s: %d cpus in %d pilots after %s, %q %q; want %d in %d after %s, %q", c.name, cpus, len(d.Add), from,
				d.News, d.Reasons, c.cpus, c.pilots, c.from, c.news)
		}
	}
}

// TestStaticPilotsStay: an idle pilot is released, unless the plan is static.
func TestStaticPilotsStay(t *testing.T) {
	t.Parallel()
	for _, static := range []bool{false, true} {
		v := scene(t)
		v.Goal.Static = static
		idle := onePilot(1, revision.Working)
		idle.Began, idle.Idle = 0, 30*time.Second
		v.Pilots = append(v.Pilots, idle)
		for i := 1; i < len(v.Tasks); i++ {
			v.Tasks[i].State = corral.TaskDone
		}
		d, err := revision.Decide(v)
		if err != nil || len(d.Drop) == 0 != static {
			t.Errorf("static %v: %v, %v", static, d.Drop, err)
		}
	}
}
