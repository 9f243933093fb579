package forecast

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
)

// asked returns the request for the worked example with its constraints.
func asked(change func(*EnsembleRequest)) EnsembleRequest {
	low := plan.Share(500_000)
	in := EnsembleRequest{Algorithm: WADPDS, Budget: cost.Amount{Money: 18_000_000, Unit: "USD"},
		Deadline: corral.Seconds(6 * time.Hour), MachineTerms: MachineTerms{Resource: VM, CPUs: 1, Price: "1USD/cpu-hour"},
		Switches: Switches{Low: &low}}
	change(&in)
	return in
}

// TestTheWorkedExample simulates the worked example with each algorithm: as published, as printed in the paper, and
// with our corrections.
func TestTheWorkedExample(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		change    func(*EnsembleRequest)
		completed ensemble.Score
		dollars   int64
	}{
		{"DPDS", func(in *EnsembleRequest) { in.Algorithm, in.Published = DPDS, true }, "000", 18},
		{"WA-DPDS begins b, which cannot end in time", func(in *EnsembleRequest) { in.Published = true }, "100", 18},
		{"SPSS", func(in *EnsembleRequest) { in.Algorithm, in.Published = SPSS, true }, "110", 18},
		{"SPSS as printed", func(in *EnsembleRequest) {
			in.Algorithm, in.Published, in.BudgetTest, in.FitTest, in.Tie = SPSS, true, LessThan, LessThan, "first"
		}, "101", 16},
		{"SPSS, corrected", func(in *EnsembleRequest) { in.Algorithm = SPSS }, "110", 17},
		{"ours", func(in *EnsembleRequest) { in.Algorithm = Rehearsal }, "110", 17},
	} {
		got, err := PlayEnsemble(plantest.Three(), asked(tt.change))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got.Completed != tt.completed || got.Cost.Money > cost.Money(tt.dollars)*1_000_000 || !got.WithinBudget {
			t.Errorf("%s: %s at %s, want %s at %d at most", tt.name, got.Completed, got.Cost, tt.completed, tt.dollars)
		}
		for k, w := range got.Workflows {
			if w.Completed != (tt.completed[k] == '1') || w.Completed != (w.Reason == "") {
				t.Errorf("%s: %+v", tt.name, w)
			}
		}
	}
}

// A machine billed by the second is released in the second in which its work is done.
func TestBilledByTheSecond(t *testing.T) {
	t.Parallel()
	short := plantest.Three()
	for _, w := range short {
		for i := range w.Tasks {
			w.Tasks[i].Runtime /= 3600
		}
	}
	for _, algorithm := range []string{SPSS, WADPDS, Rehearsal} {
		got, err := PlayEnsemble(short, asked(func(in *EnsembleRequest) {
			in.Algorithm, in.Deadline, in.Billing, in.Budget.Money = algorithm, corral.Seconds(time.Minute), "1s", 17*278
		}))
		if err != nil || got.Completed[0] != '1' || !got.WithinBudget {
			t.Errorf("%s: %s at %s: %v", algorithm, got.Completed, got.Cost, err)
		}
	}
}

// An excessive budget requests no more machines than there are tasks.
func TestMoreMoneyThanWork(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{SPDS, WADPDS, Rehearsal} {
		got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) { in.Algorithm, in.Budget.Money = algorithm, 1<<60 }))
		if err != nil || got.Completed != "111" || len(got.Machines) > 2*plantest.Three().Tasks() {
			t.Errorf("%s: %v, %d machines: %v", algorithm, got.Completed, len(got.Machines), err)
		}
	}
}

// Pilots wait in a queue that costs nothing, and end with their walltimes.
func TestPilots(t *testing.T) {
	t.Parallel()
	got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) {
		in.Resource, in.CPUs, in.Walltime, in.Delay = Pilots, 4, corral.Seconds(6*time.Hour), corral.Seconds(10*time.Minute)
		in.Budget.Money = 72_000_000
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got.Cost.Money == 0 || !got.WithinBudget || got.Completed[0] != '1' {
		t.Errorf("%s at %s", got.Completed, got.Cost)
	}
	for _, m := range got.Machines {
		if m.Ready == nil || m.From != *m.Ready || m.End-m.From > corral.Seconds(6*time.Hour) || m.Cost != 24_000_000 {
			t.Errorf("%+v", m)
		}
	}
}

// The limit that is named for a workflow completes it: budgets for the worked example, by each algorithm, and a deadline
// where the critical path is too long.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		algorithm string
		money     cost.Money
		deadline  time.Duration
		needs     string // of the last workflow
	}{
		{SPSS, 18, 6 * time.Hour, "; --budget 22USD completes it"},
		{Rehearsal, 18, 6 * time.Hour, "; --budget 22USD completes it"},
		{WADPDS, 18, 6 * time.Hour, "; --budget 23USD completes it"},
		{DPDS, 18, 6 * time.Hour, "; --budget 23USD completes it"},
		{SPSS, 30, 2 * time.Hour, "; --deadline 3h0m0s completes it"},
	} {
		in := asked(func(in *EnsembleRequest) {
			in.Algorithm, in.Deadline = tt.algorithm, corral.Seconds(tt.deadline)
			in.Budget.Money = tt.money * 1_000_000
		})
		got, err := PlayEnsemble(plantest.Three(), in)
		if err != nil {
			t.Fatalf("%s: %v", tt.algorithm, err)
		}
		for k, w := range got.Workflows {
			if w.Completed {
				continue
			}
			if !strings.HasSuffix(w.Reason, w.Needs.text()) || k == 2 && w.Needs.text() != tt.needs {
				t.Errorf("%s: workflow %d: %s, want %s", tt.algorithm, k, w.Reason, tt.needs)
			}
			more := in
			if w.Needs != nil && w.Needs.Budget != nil {
				more.Budget = *w.Needs.Budget
			}
			if w.Needs != nil && w.Needs.Deadline != nil {
				more.Deadline = *w.Needs.Deadline
			}
			if again, err := PlayEnsemble(plantest.Three(), more); err != nil || !again.Workflows[k].Completed || !again.WithinBudget {
				t.Errorf("%s: workflow %d is not completed by %+v: %v", tt.algorithm, k, w.Needs, err)
			}
		}
	}
}

// An algorithm is compared with the best candidate at each error: DPDS completes nothing, and would better be SPSS.
func TestRegret(t *testing.T) {
	t.Parallel()
	got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) {
		in.Algorithm, in.Draws = DPDS, 2
		in.Errors = []sim.Spread{{}, {Law: "uniform", Size: 0.2}}
	}))
	if err != nil || len(got.Regrets) != 2 {
		t.Fatalf("%+v: %v", got, err)
	}
	if r := got.Regrets[0]; r.Error != "0" || r.Best != "110" || r.Completed != "000" || r.Regret != 1.5 ||
		!strings.HasPrefix(r.By, "spss") {
		t.Errorf("%+v", r)
	}
	if r := got.Regrets[1]; r.Error != "uniform:0.2" || r.Regret < 0 || r.Best.Compare(r.Completed) < 0 {
		t.Errorf("%+v", r)
	}
}

// A machine that ends before it is ready is billed from its request.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) {
		in.Algorithm, in.Delay = DPDS, corral.Seconds(7*time.Hour)
	}))
	if err != nil || len(got.Machines) == 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	var sum cost.Money
	for _, m := range got.Machines {
		sum += m.Cost
		if m.Ready != nil || m.Cost < 6_000_000 {
			t.Errorf("a machine that is ready after the deadline: %+v", m)
		}
	}
	if sum != got.Cost.Money {
		t.Errorf("machines cost %s, all %s", sum, got.Cost)
	}
}

// Runtimes that no algorithm knows change what happens, and not what is planned.
func TestActual(t *testing.T) {
	t.Parallel()
	got, err := PlayEnsemble(plantest.Three(), asked(func(in *EnsembleRequest) {
		in.Algorithm, in.Published, in.Record = SPSS, true, true
		in.Actual = func(w, t int) time.Duration { return 2 * plantest.Three()[w].Tasks[t].Runtime }
	}))
	if err != nil || got.Completed != "110" || got.InTime != "000" || got.PlanCost.Money != 18_000_000 ||
		got.WithLate <= got.Deadline || got.Makespan > got.Deadline || len(got.Schedule) != 10 || got.Workflows[0].End == nil {
		t.Errorf("%+v: %v", got, err)
	}
}

func placeOf(err error) string {
	if e, ok := errors.AsType[*corral.Error](err); ok {
		return e.Place
	}
	return ""
}

// Invalid requests are refused with the name of the wrong flag.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	over := plan.Share(1_500_000)
	short := time.Millisecond
	for place, change := range map[string]func(*EnsembleRequest){
		"--algorithm":   func(in *EnsembleRequest) { in.Algorithm = "magic" },
		"--budget":      func(in *EnsembleRequest) { in.Budget.Unit = "ch" },
		"--deadline":    func(in *EnsembleRequest) { in.Deadline = 0 },
		"--draws":       func(in *EnsembleRequest) { in.Draws = -1 },
		"--delay":       func(in *EnsembleRequest) { in.Delay = -1 },
		"--failures":    func(in *EnsembleRequest) { in.Failures = 1 },
		"--alpha":       func(in *EnsembleRequest) { in.Alpha = &over },
		"--interval":    func(in *EnsembleRequest) { in.Interval = &short },
		"--published":   func(in *EnsembleRequest) { in.Algorithm, in.Published = Rehearsal, true },
		"--resource":    func(in *EnsembleRequest) { in.Resource = "horses" },
		"--shape":       func(in *EnsembleRequest) { in.CPUs = 0 },
		"--u-low":       func(in *EnsembleRequest) { in.Low = &over },
		"--walltime":    func(in *EnsembleRequest) { in.Resource = Pilots },
		"--price":       func(in *EnsembleRequest) { in.Price = "0USD/cpu-hour" },
		"--budget-test": func(in *EnsembleRequest) { in.BudgetTest = "ge" },
		"--tie":         func(in *EnsembleRequest) { in.Tie = "middle" },
	} {
		if _, err := PlayEnsemble(plantest.Three(), asked(change)); corral.KindOf(err) != corral.Invalid || placeOf(err) != place {
			t.Errorf("%s: %v", place, err)
		}
	}
	weights := asked(func(in *EnsembleRequest) { in.Price = "1USD/max(cpu=1,mem=1)-hour" })
	if _, err := PlayEnsemble(plantest.Three(), weights); corral.KindOf(err) != corral.Invalid || placeOf(err) != "--price" {
		t.Errorf("weights: %v", err)
	}
	if _, err := PlayEnsemble(nil, asked(func(*EnsembleRequest) {})); corral.KindOf(err) != corral.Invalid {
		t.Errorf("no workflow: %v", err)
	}
}
