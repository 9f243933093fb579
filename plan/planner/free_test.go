package planner

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// If one site has a price and another has none, outcomes are compared by money alone: free cpus are on the front
// however long they are held, and a trade-off does not pay for a negligible speed-up.
func TestSiteWithoutPriceBesideOneWithAPrice(t *testing.T) {
	t.Parallel()
	free, paid := cloud(), cloud()
	free.Name, paid.Name = "free", "paid"
	free.Wait = func(plan.Shape) time.Duration { return time.Minute }
	paid.Wait = func(plan.Shape) time.Duration { return 0 }
	free.Tariff = plan.Tariff{Rate: cost.Rate{Unit: "USD", Per: cost.CPUHour}}
	paid.Tariff = plan.Tariff{Rate: cost.Rate{Price: cost.Money(10_000), Unit: "USD", Per: cost.CPUHour}}
	problem := plan.Problem{Work: stages(t, time.Hour, 20, 20), Sites: []plan.Site{free, paid}}
	pl, err := Make(problem, plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, Options{Shape: 1})
	if err != nil || !pl.Feasible {
		t.Fatal(pl, err)
	}
	if pl.Cost.Money > 0 {
		t.Errorf("it costs %s to end after %s", pl.Cost, pl.Makespan)
	}
	last := pl.Front[len(pl.Front)-1]
	if last.Cost.Money != 0 || last.Makespan > corral.Seconds(3*time.Hour) {
		t.Errorf("the front %+v ends with %+v, want one that costs nothing", pl.Front, last)
	}
}
