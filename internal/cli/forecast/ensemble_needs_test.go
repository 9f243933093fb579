package forecast

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
)

// kept simulates an ensemble again with the limits that are named for one of its workflows, and reports whether they
// complete it within the budget.
func kept(t *testing.T, in EnsembleRequest, k int, n *Needs) bool {
	t.Helper()
	if n == nil {
		return false
	}
	if n.Budget != nil {
		in.Budget = *n.Budget
	}
	if n.Deadline != nil {
		in.Deadline = *n.Deadline
	}
	if n.Walltime != nil {
		in.Walltime = *n.Walltime
	}
	out, err := PlayEnsemble(plantest.Three(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Workflows[k].Completed && out.WithinBudget
}

// A task that takes longer than a pilot lasts is named, with a walltime that completes its workflow: longer than the
// estimate if the task takes longer than that.
func TestNeedsOfShortPilots(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{Rehearsal, WADPDS, DPDS, SPDS} {
		for _, law := range []sim.Spread{{}, {Law: "uniform", Size: 0.2}} {
			in := asked(func(in *EnsembleRequest) {
				in.Algorithm, in.Resource, in.Walltime = algorithm, Pilots, corral.Seconds(time.Hour)
				in.Budget.Money, in.Deadline, in.Error = 18_000_000, corral.Seconds(6*time.Hour), law
			})
			got, err := PlayEnsemble(plantest.Three(), in)
			if err != nil {
				t.Fatal(err)
			}
			for k, w := range got.Workflows {
				if w.Completed || w.Needs == nil || w.Needs.Walltime == nil || !kept(t, in, k, w.Needs) {
					t.Errorf("%s, error %s: workflow %d: %s", algorithm, law, k, w.Reason)
				}
				if n := w.Needs; k == 0 && (!strings.HasPrefix(w.Reason, "task a160 takes 2h40m0s, but a pilot lasts 1h0m0s; ") ||
					!strings.Contains(w.Reason, n.text()) || !strings.Contains(n.text(), " --walltime ")) {
					t.Errorf("%s, error %s: %s", algorithm, law, w.Reason)
				}
			}
		}
	}
}

// Few machines need time for all the work, which is longer than all critical paths.
func TestNeedsOfFewMachines(t *testing.T) {
	t.Parallel()
	for _, algorithm := range Algorithms {
		in := asked(func(in *EnsembleRequest) {
			in.Algorithm, in.Most = algorithm, 1
			in.Budget.Money, in.Deadline = 2_000_000, corral.Seconds(time.Hour)
		})
		got, err := PlayEnsemble(plantest.Three(), in)
		if err != nil {
			t.Fatal(err)
		}
		for k, w := range got.Workflows {
			if w.Completed || !kept(t, in, k, w.Needs) {
				t.Errorf("%s: workflow %d: %s", algorithm, k, w.Reason)
			}
		}
	}
}

// Where no machine runs a task, the reason is the budget or the delay, and the list of machines is never null.
func TestReasonsWithoutMachines(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*EnsembleRequest){
		"the budget of 0.5USD does not pay for a machine": func(in *EnsembleRequest) {
			in.Budget = cost.Amount{Money: 500_000, Unit: "USD"}
		},
		"no machine was ready before the deadline": func(in *EnsembleRequest) { in.Delay = corral.Seconds(7 * time.Hour) },
	} {
		got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) { in.Algorithm = DPDS; change(in) }))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range got.Workflows {
			if !strings.HasPrefix(w.Reason, want+"; ") {
				t.Errorf("%s, want %s", w.Reason, want)
			}
		}
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), `"vms":null`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
