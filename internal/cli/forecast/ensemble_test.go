package forecast

import (
	"errors"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/plantest"
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
		if m.From != m.Ready || m.End-m.From > corral.Seconds(6*time.Hour) || m.Cost != 24_000_000 {
			t.Errorf("%+v", m)
		}
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
		"--cpus":        func(in *EnsembleRequest) { in.CPUs = 0 },
		"--walltime":    func(in *EnsembleRequest) { in.Resource = Pilots },
		"--price":       func(in *EnsembleRequest) { in.Price = "0USD/cpu-hour" },
		"--budget-test": func(in *EnsembleRequest) { in.BudgetTest = "ge" },
		"--tie":         func(in *EnsembleRequest) { in.Tie = "middle" },
	} {
		if _, err := PlayEnsemble(plantest.Three(), asked(change)); corral.KindOf(err) != corral.Invalid || placeOf(err) != place {
			t.Errorf("%s: %v", place, err)
		}
	}
	if _, err := PlayEnsemble(nil, asked(func(*EnsembleRequest) {})); corral.KindOf(err) != corral.Invalid {
		t.Errorf("no workflow: %v", err)
	}
}
