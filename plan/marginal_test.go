package plan_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// TestMarginals (F9D): additional cpus are rated by the makespan saved per additional cost, in ascending order of cpus;
// a speed-up below the linear one yields a warning with the additional cost.
func TestMarginals(t *testing.T) {
	t.Parallel()
	point := func(cpus int, makespan time.Duration, dollars cost.Money) plan.Point {
		return plan.Point{PeakCPUs: cpus, Makespan: corral.Seconds(makespan),
			Cost: cost.Amount{Money: dollars * 1_000_000, Unit: "USD"}}
	}
	got := plan.Marginals([]plan.Point{
		point(8, time.Hour, 14), point(4, 3*time.Hour, 12), point(4, 4*time.Hour, 11), point(2, 6*time.Hour, 12),
		point(1, 10*time.Hour, 10),
	})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		cpus    int
		saved   time.Duration
		rate    float64 // 0: there is no additional cost
		warning string
	}{
		{2, 4 * time.Hour, 7200, "2 cpus are only 1.67 times as fast as 1, less than the linear 2.00 times: they cost 2USD more"},
		{4, 3 * time.Hour, 0, ""},
		{8, 2 * time.Hour, 3600, ""},
	} {
		m := got[i]
		if m.PeakCPUs != want.cpus || time.Duration(m.Saved) != want.saved || m.Warning != want.warning ||
			(m.Rate == nil) != (want.rate == 0) || m.Rate != nil && *m.Rate != want.rate {
			t.Errorf("step %d: %+v, want %+v", i, m, want)
		}
	}
	same := plan.Marginals([]plan.Point{point(4, time.Hour, 12), point(8, time.Hour, 12)})
	if len(same) != 1 || same[0].Rate == nil || *same[0].Rate != 0 || same[0].SpeedUp != 1 {
		t.Errorf("cpus that save nothing: %+v", same)
	}
	if got := plan.Marginals(nil); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
