package cost_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

const ch = cost.Money(1_000_000)

// charge returns the ledger after additional spending by a plan, or by pilots outside plans if plan is 0.
func charge(l cost.Ledger, plan corral.PlanID, more cost.Spending) cost.Ledger {
	spent := map[corral.PlanID]cost.Spending{0: l.Others}
	for _, line := range l.Plans {
		spent[line.Plan] = line.Spending
	}
	spent[plan] = spent[plan].Plus(more)
	next := cost.NewLedger(l.Unit, l.Balance, spent)
	for _, line := range l.Plans {
		next = next.Promise(line.Plan, line.Reserved)
	}
	return next
}

// limited returns a ledger with a balance in cpu-hours.
func limited(balance cost.Money) cost.Ledger {
	return cost.Ledger{Unit: cost.CPUHours, Balance: &balance}
}

// reserve stops the test if the reservation fails.
func reserve(t *testing.T, l cost.Ledger, plan corral.PlanID, amount cost.Money) cost.Ledger {
	t.Helper()
	l, err := l.Reserve(plan, amount)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func billed(m cost.Money) cost.Spending { return cost.Spending{Used: m, Billed: m} }

// TestReserve: reservations add up to the balance, and an error reports the amounts left, spent, and reserved for other
// plans.
func TestReserve(t *testing.T) {
	t.Parallel()
	l := reserve(t, limited(10*ch), 1, 6*ch)
	for _, tc := range []struct {
		plan   corral.PlanID
		amount cost.Money
		kind   corral.Kind
		says   string
	}{
		{2, 4 * ch, "", ""},
		{2, 5 * ch, corral.Conflict, "plan 2 needs 5ch, but only 4ch of 10ch is left: 0ch is spent and 6ch is reserved for other plans"},
		{2, 11 * ch, corral.Unsatisfiable, "raise the allocation, or plan for less"},
		{1, 4 * ch, "", ""},
		{1, 5 * ch, corral.Unsatisfiable, "only 4ch of 10ch is left: 0ch is spent and 0ch is reserved for other plans"},
		{1, 0, "", ""},
		{2, -1, corral.Invalid, "-0.000001ch: it is negative"},
	} {
		next, err := l.Reserve(tc.plan, tc.amount)
		if err == nil != (tc.kind == "") || err != nil && (corral.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%d for plan %d: %v, want %q with %q", tc.amount, tc.plan, err, tc.kind, tc.says)
		}
		if err != nil && next.Committed() != 6*ch {
			t.Errorf("%d for plan %d was refused and leaves %+v", tc.amount, tc.plan, next)
		}
	}
	if l.Committed() != 6*ch || len(l.Plans) != 1 {
		t.Errorf("the ledger itself was changed: %+v", l)
	}
	if left := reserve(t, cost.Ledger{Unit: "USD"}, 1, 1e18).Left(); left != nil {
		t.Errorf("%v is left of what is not limited", left)
	}
}

// TestCharge: spending, including that of pilots outside plans, counts in addition to reservations. Money that was
// spent is never returned.
func TestCharge(t *testing.T) {
	t.Parallel()
	l := reserve(t, limited(10*ch), 1, 4*ch)
	l = charge(charge(l, 1, billed(2*ch)), 0, billed(1*ch))
	if s := l.Statement(); *s.Left != 3*ch || s.Reserved != 4*ch || s.Billed != 3*ch {
		t.Errorf("after 2ch of the plan's 6ch and 1ch of others: %+v", s)
	}
	if line := l.Plans[0]; line.Reserved != 4*ch {
		t.Errorf("%d is promised to the plan", line.Reserved)
	}
	over := charge(l, 1, billed(20*ch))
	if s := over.Statement(); *s.Left != 0 || s.Reserved != 4*ch || s.Billed != 23*ch {
		t.Errorf("after more than the balance: %+v", s)
	}
	if _, err := over.Reserve(2, 1); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a promise of what is not there: %v", err)
	}
	if _, err := over.Reserve(1, 0); err != nil {
		t.Errorf("a promise of nothing: %v", err)
	}
	if s := over.Promise(1, ch).Statement(); *s.Left != 0 || s.Reserved != 5*ch {
		t.Errorf("a promise that was made before: %+v", s)
	}
}

// TestPromisesKeepToTheBalance: for any sequence of reservations, and of spending within these reservations, the
// committed amount does not exceed the balance.
func TestPromisesKeepToTheBalance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		balance := cost.Money(rapid.Int64Range(0, 1000).Draw(t, "balance"))
		l := limited(balance)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			plan := corral.PlanID(rapid.IntRange(1, 5).Draw(t, "plan"))
			amount := cost.Money(rapid.Int64Range(0, 600).Draw(t, "amount"))
			if rapid.Bool().Draw(t, "spends") {
				for _, line := range l.Plans {
					if line.Plan == plan {
						spent := min(amount, line.Reserved)
						l = charge(l.Promise(plan, -spent), plan, billed(spent))
					}
				}
			} else if next, err := l.Reserve(plan, amount); err == nil {
				l = next
			}
			if l.Committed() > balance {
				t.Fatalf("%d of %d is committed: %+v", l.Committed(), balance, l)
			}
		}
	})
}

func TestTerms(t *testing.T) {
	t.Parallel()
	tariff, allocation, err := cost.TermsOf(corral.SiteTerms{Price: "0.04USD/cpuh", Billing: "10m-minimum", Allocation: "50USD"})
	if err != nil || tariff.Rate.String() != "0.04USD/cpu-hour" || tariff.Billing.Minimum != 10*time.Minute || *allocation != 50*ch {
		t.Errorf("terms %+v, %v, %v", tariff, allocation, err)
	}
	if tariff, allocation, err = cost.TermsOf(corral.SiteTerms{}); tariff != cost.CoreHours || allocation != nil || err != nil {
		t.Errorf("no terms: %+v, %v, %v", tariff, allocation, err)
	}
	for place, terms := range map[string]corral.SiteTerms{
		"price": {Price: "-1USD/cpu-hour"}, "billing": {Billing: "soon"},
		"allocation": {Price: "1USD/cpu-hour", Allocation: "5ch"}, "price ": {Price: "1USD/GB"},
		"price  ": {Price: "NaNUSD/cpu-hour"}, "allocation ": {Allocation: "-5ch"},
	} {
		_, _, err := cost.TermsOf(terms)
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), strings.TrimSpace(place)) {
			t.Errorf("%+v: %v, want an error at %s", terms, err, place)
		}
	}
}

// TestBillingAsText: formatting a parsed billing period returns the original text.
func TestBillingAsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1h", "1m", "1s", "10m-minimum", "10m-minimum+1s", "1h10m", "90m-minimum"} {
		b, err := cost.ParseBilling(text)
		again, err2 := cost.ParseBilling(b.String())
		if err != nil || err2 != nil || again != b {
			t.Errorf("%s is written %s: %v %v", text, b, err, err2)
		}
	}
	if text := (cost.Billing{}).String(); text != "" {
		t.Errorf("no billing is %q", text)
	}
}

// TestChargeCountsHours: two hosts with 4 cpus use 12 cpu-hours in 90 minutes, but 16 are billed if only whole hours
// are billed.
func TestChargeCountsHours(t *testing.T) {
	t.Parallel()
	tariff, err := cost.ParseTariff("0.5USD/host-hour", "1h")
	if err != nil {
		t.Fatal(err)
	}
	got := tariff.Charge(cost.Holding{Hosts: 2, CPUs: 8, Held: 90 * time.Minute}, cost.Spending{Used: 1})
	if want := (cost.Spending{Used: 1_500_001, Billed: 2_000_000, UsedHours: 12, BilledHours: 16}); got != want {
		t.Errorf("charged %+v, want %+v", got, want)
	}
	if per := tariff.OfCPUMinutes(120, 4); per != 250_000 {
		t.Errorf("two cpu-hours of hosts with 4 cost %d at least", per)
	}
}
