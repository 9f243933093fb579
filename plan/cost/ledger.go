package cost

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
)

// Spending is what pilots cost so far, by the time that they were held and by the time that is billed for it.
type Spending struct {
	Used        Money   `json:"used"`
	Billed      Money   `json:"billed"`
	UsedHours   float64 `json:"used_core_hours"`
	BilledHours float64 `json:"billed_core_hours"`
}

// Plus adds spending in the same unit.
func (s Spending) Plus(o Spending) Spending {
	return Spending{s.Used.Plus(o.Used), s.Billed.Plus(o.Billed), s.UsedHours + o.UsedHours,
		s.BilledHours + o.BilledHours}
}

// A Ledger is the account of a site: what its pilots may cost in all, what is promised to plans, and what was spent.
// Money is in Unit, and what counts of spending is what is billed.
//
// The one invariant: Reserve never promises anything so that what is committed, to plans and by pilots of no plan,
// exceeds the balance. Pilots that stay longer than their plan says, and pilots of no plan, may still exceed it: then
// nothing is left, and no further promise is made.
type Ledger struct {
	Unit    Unit
	Balance *Money // what all pilots may cost, those of the past included; nil: not limited
	Plans   []Line // by plan
	Others  Spending
}

// NewLedger returns the ledger with what plans spent, and what pilots of no plan did, as plan 0; nothing is promised.
func NewLedger(unit Unit, balance *Money, spent map[corral.PlanID]Spending) Ledger {
	l := Ledger{Unit: unit, Balance: balance, Others: spent[0]}
	for _, plan := range slices.Sorted(maps.Keys(spent)) {
		if plan != 0 {
			l.Plans = append(l.Plans, Line{Plan: plan, Spending: spent[plan]})
		}
	}
	return l
}

// A Line of a ledger is one plan's.
type Line struct {
	Plan     corral.PlanID `json:"plan_id"`
	Reserved Money         `json:"reserved"` // promised to its pilots that are not over, and not billed yet
	Spending
}

// committed is what the plan takes of the balance: what it has spent, and what it still may.
func (l Line) committed() Money { return l.Billed.Plus(l.Reserved) }

// Spent is what all pilots cost so far.
func (l Ledger) Spent() Spending {
	sum := l.Others
	for _, line := range l.Plans {
		sum = sum.Plus(line.Spending)
	}
	return sum
}

// Committed is what is spent or promised.
func (l Ledger) Committed() Money {
	sum := l.Others.Billed
	for _, line := range l.Plans {
		sum = sum.Plus(line.committed())
	}
	return sum
}

// Left is what may still be promised, at least 0; nil: not limited.
func (l Ledger) Left() *Money {
	if l.Balance == nil {
		return nil
	}
	left := max(0, *l.Balance-l.Committed())
	return &left
}

// Promise returns the ledger with so much more promised to a plan, whatever is left.
func (l Ledger) Promise(plan corral.PlanID, amount Money) Ledger {
	l.Plans = slices.Clone(l.Plans)
	i := l.line(plan)
	l.Plans[i].Reserved = l.Plans[i].Reserved.Plus(amount)
	return l
}

// Reserve is Promise as far as the balance allows. More than what is left is an error: Unsatisfiable if the balance
// less what was spent is too small even if all other plans were released, else Conflict. The ledger stays as it is.
func (l Ledger) Reserve(plan corral.PlanID, amount Money) (Ledger, error) {
	if amount < 0 {
		return l, corral.Errorf(corral.Invalid, "plan %d cannot reserve %s: it is negative", plan, l.amount(amount))
	}
	next := l.Promise(plan, amount)
	if l.Balance == nil || amount == 0 || next.Committed() <= *l.Balance {
		return next, nil
	}
	spent := l.Spent().Billed
	own := next.Plans[next.line(plan)].Reserved
	others := next.Committed().Plus(-spent).Plus(-own)
	kind, advice := corral.Conflict, "release a plan that is not needed any more, or raise the allocation"
	if spent.Plus(own) > *l.Balance {
		kind, advice = corral.Unsatisfiable, "raise the allocation, or plan for less"
	}
	return l, corral.Errorf(kind,
		"plan %d needs %s, and %s of %s is left: %s is spent, and %s promised to other plans; %s", plan,
		l.amount(amount), l.amount(max(0, *l.Balance-l.Committed())), l.amount(*l.Balance), l.amount(spent),
		l.amount(others), advice)
}

func (l Ledger) amount(m Money) Amount { return Amount{m, l.Unit} }

// Within returns the ledger with a balance of at most what was spent by some time and so much more: what somebody else,
// who counts all that the account uses, said at that time is left.
func (l Ledger) Within(left, spent Money) Ledger {
	if most := spent.Plus(left); l.Balance == nil || most < *l.Balance {
		l.Balance = &most
	}
	return l
}

// line returns the index of a plan's line, which is added if there is none.
func (l *Ledger) line(plan corral.PlanID) int {
	i, found := slices.BinarySearchFunc(l.Plans, plan, func(l Line, p corral.PlanID) int { return int(l.Plan - p) })
	if !found {
		l.Plans = slices.Insert(l.Plans, i, Line{Plan: plan})
	}
	return i
}

// A Statement is a ledger for people and programs to read.
type Statement struct {
	Unit     Unit   `json:"unit"`
	Balance  *Money `json:"balance"`  // null: not limited
	Reserved Money  `json:"reserved"` // promised to plans, and not billed yet
	Left     *Money `json:"left"`
	Spending
	Plans []Line `json:"plans"`
}

// Statement sums the ledger up.
func (l Ledger) Statement() Statement {
	spent := l.Spent()
	lines := l.Plans
	if lines == nil {
		lines = []Line{}
	}
	return Statement{Unit: l.Unit, Balance: l.Balance, Reserved: l.Committed().Plus(-spent.Billed), Left: l.Left(),
		Spending: spent, Plans: lines}
}
