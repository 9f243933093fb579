package moga

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A Member is a choice of slots that no known one dominates.
type Member struct {
	cost.Point
	Chosen Set
}

// A Front is members by makespan, the shortest first, and thereby by cost, the highest first.
type Front []Member

// with returns the front with a member, unless one dominates or equals it, and without those that it dominates.
func (f Front) with(m Member) Front {
	i, _ := slices.BinarySearchFunc(f, m, func(a, b Member) int { return cmp.Compare(a.Makespan, b.Makespan) })
	if i > 0 && f[i-1].Cost <= m.Cost || i < len(f) && f[i].Makespan == m.Makespan && f[i].Cost <= m.Cost {
		return f
	}
	end := i
	for end < len(f) && f[end].Cost >= m.Cost {
		end++
	}
	return slices.Replace(f, i, end, m)
}

// Limits bound what is chosen. Zero is no bound.
type Limits struct {
	Deadline time.Duration // for the makespan
	Budget   cost.Money    // for the cost
}

func (l Limits) allow(p cost.Point) bool {
	return (l.Deadline == 0 || p.Makespan <= l.Deadline) && (l.Budget == 0 || p.Cost <= l.Budget)
}

// Choose returns the member with the least α × cost + (1 − α) × makespan among those within the limits, both as parts
// of what the whole front spans (Singh 2008, equation 15): α of 0 asks for the shortest makespan alone, of 1 for the
// least cost. Of equal ones the faster is taken. An α above 1 is an error of kind Invalid. If there is no member within
// the limits, or none at all, the error is of kind Unsatisfiable and names the closest ones.
func (f Front) Choose(alpha ensemble.Share, limits Limits) (Member, error) {
	if alpha < 0 || alpha > ensemble.Whole {
		return Member{}, corral.Errorf(corral.Invalid, "the trade-off is %s: give a number between 0, for the "+
			"shortest makespan, and 1, for the least cost", alpha)
	}
	if len(f) == 0 {
		return Member{}, corral.Errorf(corral.Unsatisfiable, "no choice of the slots has room for all tasks")
	}
	var best *Member
	var least *big.Int
	for i := range f {
		if !limits.allow(f[i].Point) {
			continue
		}
		if w := f.weigh(alpha, f[i].Point); best == nil || w.Cmp(least) < 0 {
			best, least = &f[i], w
		}
	}
	if best == nil {
		fast, cheap := f[0], f[len(f)-1]
		return Member{}, corral.Errorf(corral.Unsatisfiable, "no plan is within the limits: the fastest takes %s and "+
			"costs %s, the cheapest takes %s and costs %s", fast.Makespan, fast.Cost, cheap.Makespan, cheap.Cost)
	}
	return *best, nil
}

// weigh is the weighted sum of a point's objectives times both spans, which are the same for all points: exact, and
// without a division. A front of one point spans nothing, and weighs nothing.
func (f Front) weigh(alpha ensemble.Share, p cost.Point) *big.Int {
	low, high := f[0].Makespan, f[len(f)-1].Makespan
	cheap, dear := f[len(f)-1].Cost, f[0].Cost
	times := func(factors ...int64) *big.Int {
		product := big.NewInt(1)
		for _, x := range factors {
			product.Mul(product, big.NewInt(x))
		}
		return product
	}
	money := times(int64(alpha), int64(p.Cost-cheap), int64(high-low))
	return money.Add(money, times(int64(ensemble.Whole-alpha), int64(p.Makespan-low), int64(dear-cheap)))
}
