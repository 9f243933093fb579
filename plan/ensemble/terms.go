package ensemble

import (
	"math"
	"math/big"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// Terms are what a machine costs: the price of each period that it has begun, from when it is billed until it ends, one
// period at least.
type Terms struct {
	Price  cost.Money
	Period time.Duration
	Unit   cost.Unit // of the price; only told
}

// Hourly is the thesis's price: a dollar for each hour that has begun.
var Hourly = Terms{Price: 1_000_000, Period: time.Hour, Unit: "USD"}

// Amount is money as a sentence has it.
func (t Terms) Amount(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: t.Unit} }

// Periods returns for how many periods a machine is billed that has been held for so long.
func (t Terms) Periods(held time.Duration) int64 {
	if held <= t.Period {
		return 1
	}
	return int64((held + t.Period - 1) / t.Period)
}

// Cost returns what a machine costs that has been held for so long.
func (t Terms) Cost(held time.Duration) cost.Money { return t.Times(t.Periods(held)) }

// Times returns what n periods cost; sums beyond the range of money stay at its end.
func (t Terms) Times(n int64) cost.Money {
	if n > 0 && int64(t.Price) > math.MaxInt64/n {
		return math.MaxInt64
	}
	return t.Price * cost.Money(n)
}

// Affords returns how many periods money pays for, none if there is a debt.
func (t Terms) Affords(m cost.Money) int64 {
	if t.Price <= 0 {
		return math.MaxInt64
	}
	return int64(max(0, m) / t.Price)
}

// Of returns the price of a time in proportion, rounded up to a whole micro-unit.
func (t Terms) Of(d time.Duration) cost.Money {
	return cost.Money(clamp(ceil(product(int64(t.Price), int64(max(0, d))), big.NewInt(int64(t.Period)))))
}

// Machines returns how many machines spend a budget until a deadline, N = ⌈b ÷ (d × p)⌉ (Juve 2012, eq. 6.1), with p
// the price of a period. That is none where the budget does not pay for a period of one. N machines until the deadline
// cost the budget or more, not less, and more at once where the deadline is within the first period (trap T25): so
// there are never more than the budget pays a period for.
func (t Terms) Machines(budget cost.Money, deadline time.Duration) int {
	if budget < t.Price || deadline <= 0 || t.Price <= 0 {
		return 0
	}
	n := ceil(product(int64(budget), int64(t.Period)), product(int64(deadline), int64(t.Price)))
	return int(min(clamp(n), t.Affords(budget), math.MaxInt32))
}

// MachinesPublished is the number that the authors' program starts: ⌈⌊b⌋ ÷ ⌈d⌉ ÷ p⌉, with b in whole units of money and
// d in whole periods.
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

// ceil returns a ÷ b, rounded up; a is not negative and b is positive.
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
