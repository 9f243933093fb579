package forecast

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/plantest"
)

// A grid ranges from the minimum with which a workflow can be completed to the requested maximum, and each cell is the
// same as the result of a separate simulation of the ensemble.
func TestGrid(t *testing.T) {
	t.Parallel()
	in := EnsembleRequest{Algorithm: SPSS, Budget: cost.Amount{Money: 18_000_000, Unit: "USD"}, Deadline: corral.Seconds(6 * time.Hour),
		MachineTerms: MachineTerms{Resource: VM, Price: "1USD/cpu-hour", CPUs: 1}}
	cells, err := PlayGrid(plantest.Three(), in, 3)
	if err != nil || len(cells) != 9 {
		t.Fatalf("%d cells: %v", len(cells), err)
	}
	if c := cells[0]; c.Budget.Money >= 5_000_000 || time.Duration(c.Deadline) != 3*time.Hour || c.Count > 1 {
		t.Errorf("the least cell is %+v", c)
	}
	for _, c := range cells {
		in.Budget, in.Deadline = c.Budget, c.Deadline
		p, err := PlayEnsemble(plantest.Three(), in)
		if err != nil || p.Completed != c.Completed || p.Cost != c.Cost || c.Count != p.Completed.Count() {
			t.Errorf("%+v, by itself %v %v", c, p, err)
		}
	}
	if last := cells[8]; last.Completed != "110" || last.Cost.Money != 17_000_000 {
		t.Errorf("the most cell is %+v", last)
	}
	in.Budget, in.Deadline = cost.Amount{}, 0
	if cells, err = PlayGrid(plantest.Three(), in, 2); err != nil || cells[3].Budget.Unit != "USD" || cells[3].Count < 2 {
		t.Errorf("without limits: %+v %v", cells, err)
	}
	in.Algorithm = "magic"
	if _, err = PlayGrid(plantest.Three(), in, 2); corral.KindOf(err) != corral.Invalid {
		t.Errorf("an unknown algorithm: %v", err)
	}
}
