package ensemble

import (
	"math"
	"math/big"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// Terms determine the cost of a machine: the price is charged for each period that has begun between the start of
// billing and the end of the machine, and for at least one period.
type Terms struct {
	Price  cost.Money
	Period time.Duration
	Unit   cost.Unit // of the price; for display only
}

// Hourly is the price in the thesis: one dollar for each hour begun.
var Hourly = Terms{Price: 1_000_000, Period: time.Hour, Unit: "USD"}

// Amount adds the unit to money, for display.
func (t Terms) Amount(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: t.Unit} }

// Periods returns the number of periods billed for a machine that has been held for the given time.
func (t Terms) Periods(held time.Duration) int64 {
	if held <= t.Period {
		return 1
	}
	return int64((held + t.Period - 1) / t.Period)
}

// Cost returns the cost of a machine that has been held for the given time.
func (t Terms) Cost(held time.Duration) cost.Money { return t.Times(t.Periods(held)) }

// Times returns the cost of n periods; it saturates at the maximum.
func (t Terms) Times(n int64) cost.Money {
	if n > 0 && int64(t.Price) > math.MaxInt64/n {
		return math.MaxInt64
	}
	return t.Price * cost.Money(n)
}

// Affords returns the number of periods that an amount pays for, or 0 for a negative amount.
func (t Terms) Affords(m cost.Money) int64 {
	if t.Price <= 0 {
		return math.MaxInt64
	}
	return int64(max(0, m) / t.Price)
}

// Of returns the proportional price of a time, rounded up to a whole micro-unit.
func (t Terms) Of(d time.Duration) cost.Money {
	return cost.Money(clamp(ceil(product(int64(t.Price), int64(max(0, d))), big.NewInt(int64(t.Period)))))
}

// Machines returns the number of machines that spend a budget by a deadline, N = ⌈b ÷ (d × p)⌉ (Juve 2012, eq. 6.1),
// where p is the price of a period. It is 0 if the budget does not pay for one period of one machine. N machines that
// are held until the deadline cost at least the budget, and exceed it immediately if the deadline is within the first
// period. Therefore N is limited to the number of machines for which the budget pays one period.
func (t Terms) Machines(budget cost.Money, deadline time.Duration) int {
	if budget < t.Price || deadline <= 0 || t.Price <= 0 {
		return 0
	}
	n := ceil(product(int64(budget), int64(t.Period)), product(int64(deadline), int64(t.Price)))
	return int(min(clamp(n), t.Affords(budget), math.MaxInt32))
}

// MachinesPublished returns the number of machines that the program of the thesis starts: ⌈⌊b⌋ ÷ ⌈d⌉ ÷ p⌉, with b in
// whole units of money and d in whole periods.
func (t Terms) MachinesPublished(budget cost.Money, deadline time.Duration) int {
	if budget < t.Price || deadline <= 0 || t.Price <= 0 {
		return 0
	}
	const unit = 1_000_000
	periods := int64((deadline + t.Period - 1) / t.Period)
	n := ceil(big.NewInt(int64(budget/unit*unit)), product(periods, int64(t.Price)))
	return int(min(clamp(n), math.MaxInt32))
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// ceil returns a ÷ b, rounded up; a must not be negative and b must be positive.
func ceil(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func clamp(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}
