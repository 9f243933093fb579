package plan_test

import (
	"math"
	"testing"

	"github.com/corral-pilot/corral/plan"
)

// The expected intervals are those of prop.test(correct = FALSE) in R.
func TestShareOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, outcomes int
		want        plan.Share
	}{
		{0, 20, plan.Share{Share: 0, Low: 0, High: 0.1611}},
		{20, 20, plan.Share{Share: 1, Low: 0.8389, High: 1}},
		{90, 100, plan.Share{Share: 0.9, Low: 0.8256, High: 0.9448}},
		{800, 1600, plan.Share{Share: 0.5, Low: 0.4755, High: 0.5245}},
	} {
		got := plan.ShareOf(c.n, c.outcomes)
		for _, d := range []float64{got.Share - c.want.Share, got.Low - c.want.Low, got.High - c.want.High} {
			if math.Abs(d) > 0.00005 {
				t.Errorf("%d of %d: %+v, want %+v", c.n, c.outcomes, got, c.want)
				break
			}
		}
	}
}
