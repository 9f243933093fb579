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

// A Member is a choice of slots that no other known choice dominates.
type Member struct {
	cost.Point
	Chosen Set
}

// A Front is a list of members by ascending makespan, and thereby descending cost.
type Front []Member

// with returns the front with a new member and without the members that the new one dominates. It returns the front
// unchanged if a member dominates or equals the new one.
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

// Limits restrict the choice. Zero means no limit.
type Limits struct {
	Deadline time.Duration // for the makespan
	Budget   cost.Money    // for the cost
}

func (l Limits) allow(p cost.Point) bool {
	return (l.Deadline == 0 || p.Makespan <= l.Deadline) && (l.Budget == 0 || p.Cost <= l.Budget)
}

// Choose returns the member with the lowest α × cost + (1 − α) × makespan within the limits, both relative to the range
// of the whole front (Singh 2008, equation 15): an α of 0 selects the shortest makespan, 1 the lowest cost. Ties go to
// the faster member. An α outside this range is an error of kind Invalid. If no member is within the limits, or the
// front is empty, the error is of kind Unsatisfiable and names the closest members.
func (f Front) Choose(alpha ensemble.Share, limits Limits) (Member, error) {
	if alpha < 0 || alpha > ensemble.Whole {
		return Member{}, corral.Errorf(corral.Invalid, "the trade-off is %s: it must be between 0, for the "+
			"shortest makespan, and 1, for the lowest cost", alpha)
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

// weigh returns the weighted sum of a point's objectives times both ranges, which are the same for all points: this is
// exact and avoids a division. For a front of one point the ranges and the weight are 0.
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
