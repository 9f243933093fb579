package plan

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// TestRuntimeOfAPlacement: the record of a plan distinguishes a task's runtime from its time on slow hosts, so that a
// simulation of the plan applies the slowdown only once.
func TestRuntimeOfAPlacement(t *testing.T) {
	t.Parallel()
	problem := Problem{Sites: []Site{
		{Name: "slow", Pace: Pace{Speed: 0.5}, Wait: func(Shape) time.Duration { return 0 }},
		{Name: "fast", Wait: func(Shape) time.Duration { return 0 }},
	}}
	p := &Plan{Pilots: []Pilot{{Site: "slow",
		Shape: corral.Shape{Hosts: 1, CPUs: 1}}, {Site: "fast", Shape: corral.Shape{Hosts: 1, CPUs: 1}}}}
	problem.Present = []Present{{Site: "fast", Hosts: 1}, {Site: "slow", Hosts: 1, Pace: Pace{Speed: 0.25}}}
	p.Assumed = Assume(problem, p, "none")
	took := corral.Seconds(20 * time.Second)
	for pilot, want := range []time.Duration{10 * time.Second, 20 * time.Second, 20 * time.Second, 5 * time.Second} {
		if got := p.runtime(Placement{Pilot: pilot, Start: took, End: 2 * took}); got != want {
			t.Errorf("on pilot %d: %s, want %s", pilot, got, want)
		}
	}
	if again := p.Assumed.Problem(Work{}); again.Sites[0].Speed != 0.5 || again.Sites[1].Speed != 0 {
		t.Errorf("sites %+v, want the assumed speeds", again.Sites)
	}
}

// TestSpeedsOfAllSites: a plan records the speeds of all its sites, including sites where it requests no pilots.
func TestSpeedsOfAllSites(t *testing.T) {
	t.Parallel()
	problem := Problem{Sites: []Site{{Name: "slow"}, {Name: "fast"}}, Present: []Present{{Site: "there", Hosts: 1}}}
	problem.Sites[0].Speed, problem.Present[0].Speed = 0.5, 0.25
	p := &Plan{}
	if got := p.SpeedAt("slow"); got != 0 {
		t.Errorf("a plan without assumptions has the speed %g", got)
	}
	p.Assumed = Assume(problem, p, "0")
	for site, want := range map[string]corral.Speed{"slow": 0.5, "fast": 0, "there": 0.25, "new": 0} {
		if got := p.SpeedAt(site); got != want {
			t.Errorf("at site %s the speed is %g, want %g", site, got, want)
		}
	}
}

// TestSpreadOfOneTime: a distribution is constant only if all of its quantiles are equal, not just the first and the
// last.
func TestSpreadOfOneTime(t *testing.T) {
	t.Parallel()
	same := func(float64) time.Duration { return time.Hour }
	dip := func(share float64) time.Duration {
		if share == 0.5 {
			return time.Minute
		}
		return time.Hour
	}
	if one, all := NewSpread(same), NewSpread(dip); len(one) != 1 || all.At(0.5) != time.Minute {
		t.Errorf("%d times of one, and a median of %s, want 1 and 1m", len(one), all.At(0.5))
	}
}
