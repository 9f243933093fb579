package cost

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
)

// Spending is the cost of pilots so far, both for the time held and for the time billed.
type Spending struct {
	Used        Money   `json:"used"`
	Billed      Money   `json:"billed"`
	UsedHours   float64 `json:"used_core_hours"`
	BilledHours float64 `json:"billed_core_hours"`
}

// Plus returns the sum of two spendings in the same unit.
func (s Spending) Plus(o Spending) Spending {
	return Spending{s.Used.Plus(o.Used), s.Billed.Plus(o.Billed), s.UsedHours + o.UsedHours,
		s.BilledHours + o.BilledHours}
}

// A Ledger is the account of a site: the balance for its pilots, the amounts reserved for plans, and the money spent.
// Money is in Unit. The amounts that count as spent are the billed ones, not the used ones.
//
// The invariant: Reserve never lets the committed amount, for plans and for pilots outside plans, exceed the balance.
// Pilots that stay longer than planned, and pilots outside plans, may still cause the committed amount to exceed the
// balance; then nothing is left, and no further amount can be reserved. package provision ends pilots before the amount
// spent exceeds the balance.
type Ledger struct {
	Unit    Unit
	Balance *Money // amount for all pilots, including past ones; nil: not limited
	Plans   []Line // sorted by plan
	Others  Spending
}

// NewLedger returns a ledger without reservations. spent holds the spending of each plan, and that of pilots outside
// plans as plan 0.
func NewLedger(unit Unit, balance *Money, spent map[corral.PlanID]Spending) Ledger {
	l := Ledger{Unit: unit, Balance: balance, Others: spent[0]}
	for _, plan := range slices.Sorted(maps.Keys(spent)) {
		if plan != 0 {
			l.Plans = append(l.Plans, Line{Plan: plan, Spending: spent[plan]})
		}
	}
	return l
}

// A Line of a ledger belongs to one plan.
type Line struct {
	Plan     corral.PlanID `json:"plan_id"`
	Reserved Money         `json:"reserved"` // for its unfinished pilots: the part that is not billed yet
	Spending
}

// committed returns the plan's share of the balance: money spent plus money reserved.
func (l Line) committed() Money { return l.Billed.Plus(l.Reserved) }

// spent returns the cost of all pilots so far.
func (l Ledger) spent() Spending {
	sum := l.Others
	for _, line := range l.Plans {
		sum = sum.Plus(line.Spending)
	}
	return sum
}

// Committed returns the sum of the amounts spent and reserved.
func (l Ledger) Committed() Money {
	sum := l.Others.Billed
	for _, line := range l.Plans {
		sum = sum.Plus(line.committed())
	}
	return sum
}

// Left returns the amount that may still be reserved, at least 0, or nil if the amount is not limited.
func (l Ledger) Left() *Money {
	if l.Balance == nil {
		return nil
	}
	left := max(0, *l.Balance-l.Committed())
	return &left
}

// Promise returns the ledger with an additional amount reserved for a plan, regardless of the balance.
func (l Ledger) Promise(plan corral.PlanID, amount Money) Ledger {
	l.Plans = slices.Clone(l.Plans)
	i := l.line(plan)
	l.Plans[i].Reserved = l.Plans[i].Reserved.Plus(amount)
	return l
}

// Reserve is like Promise, but within the balance. If the amount exceeds the amount that is left, the ledger is
// unchanged and the error is Conflict, or Unsatisfiable if the amount would not fit even without the other plans'
// reservations.
func (l Ledger) Reserve(plan corral.PlanID, amount Money) (Ledger, error) {
	if amount < 0 {
		return l, corral.Errorf(corral.Invalid, "plan %d cannot reserve %s: it is negative", plan, l.amount(amount))
	}
	next := l.Promise(plan, amount)
	if l.Balance == nil || amount == 0 || next.Committed() <= *l.Balance {
		return next, nil
	}
	spent := l.spent().Billed
	own := next.Plans[next.line(plan)].Reserved
	others := next.Committed().Plus(-spent).Plus(-own)
	kind, advice := corral.Conflict, "release a plan that is no longer needed, or raise the allocation"
	if spent.Plus(own) > *l.Balance {
		kind, advice = corral.Unsatisfiable, "raise the allocation, or plan for less"
	}
	return l, corral.Errorf(kind,
		"plan %d needs %s, but only %s of %s is left: %s is spent and %s is reserved for other plans; %s", plan,
		l.amount(amount), l.amount(max(0, *l.Balance-l.Committed())), l.amount(*l.Balance), l.amount(spent),
		l.amount(others), advice)
}

func (l Ledger) amount(m Money) Amount { return Amount{m, l.Unit} }

// Within returns the ledger with its balance limited to spent plus left. left is the rest of the account, as reported
// by an accounting system outside Corral, which counts all use of the account; spent is the amount that had been spent
// by the time of that report.
func (l Ledger) Within(left, spent Money) Ledger {
	if most := spent.Plus(left); l.Balance == nil || most < *l.Balance {
		l.Balance = &most
	}
	return l
}

// line returns the index of a plan's line, and adds the line if it is missing.
func (l *Ledger) line(plan corral.PlanID) int {
	i, found := slices.BinarySearchFunc(l.Plans, plan, func(l Line, p corral.PlanID) int { return int(l.Plan - p) })
	if !found {
		l.Plans = slices.Insert(l.Plans, i, Line{Plan: plan})
	}
	return i
}

// A Statement is a ledger in a form for people and programs.
type Statement struct {
	Unit     Unit   `json:"unit"`
	Balance  *Money `json:"balance"`  // null: not limited
	Reserved Money  `json:"reserved"` // for plans: the part that is not billed yet
	Left     *Money `json:"left"`
	Spending
	Plans []Line `json:"plans"`
}

// Statement returns a statement of the ledger.
func (l Ledger) Statement() Statement {
	spent := l.spent()
	lines := l.Plans
	if lines == nil {
		lines = []Line{}
	}
	return Statement{Unit: l.Unit, Balance: l.Balance, Reserved: l.Committed().Plus(-spent.Billed), Left: l.Left(),
		Spending: spent, Plans: lines}
}
