package plan

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Candidate holds the figures by which a planner compares a choice. All candidates of a request are compared
// together, and must have costs in the same unit.
type Candidate struct {
	cost.Point
	CPUs    int  // held at once
	Outside bool // beyond a bound of the goal: it serves only as a reference
}

// A Weighing compares choices by J(α) = α × cost ÷ cost* + (1 − α) × makespan ÷ makespan*, where α is the weight of
// cost, and cost* and makespan* are the least positive values of all choices. If all costs or all makespans are 0, they
// count as equal.
type Weighing struct {
	alpha Share
	least cost.Point
}

// Weigh returns the weighing of choices.
func Weigh(alpha Share, all []Candidate) Weighing {
	w := Weighing{alpha: alpha}
	for _, c := range all {
		w.least.Makespan = leastPositive(w.least.Makespan, c.Makespan)
		w.least.Cost = leastPositive(w.least.Cost, c.Cost)
	}
	return w
}

func leastPositive[T ~int64](least, n T) T {
	if n > 0 && (least == 0 || n < least) {
		return n
	}
	return least
}

// Of returns J of a choice for display, in multiples of the best conceivable choice.
func (w Weighing) Of(p cost.Point) float64 {
	whole := product(int64(Whole), w.base(w.least.Cost), w.base(cost.Money(w.least.Makespan)))
	j, _ := new(big.Rat).SetFrac(w.exact(p), whole).Float64()
	return j
}

// exact returns J of a choice times both references, in millionths, which is a whole number.
func (w Weighing) exact(p cost.Point) *big.Int {
	money := product(int64(w.alpha), int64(p.Cost), w.base(cost.Money(w.least.Makespan)))
	return money.Add(money, product(int64(Whole-w.alpha), int64(p.Makespan), w.base(w.least.Cost)))
}

func (w Weighing) base(least cost.Money) int64 { return max(1, int64(least)) }

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, n := range factors {
		p.Mul(p, big.NewInt(n))
	}
	return p
}

// Order returns the indices of the candidates within the goal's bounds, the best first. The candidates whose cost (for
// objective cost) or J (for objective tradeoff) is within 1 % of the least count as equally good: among them the
// soonest comes first, then the one with the fewest cpus. The others are sorted by the objective, then by cost, cpus
// and makespan. Remaining ties are resolved by rest, which may be nil, then by index.
func (g Goal) Order(all []Candidate, rest func(i, j int) int) []int {
	var order []int
	for i, c := range all {
		if !c.Outside {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return nil
	}
	score, tolerant := g.scores(all)
	least := score[slices.MinFunc(order, func(i, j int) int { return score[i].Cmp(score[j]) })]
	near := make([]bool, len(all))
	for _, i := range order {
		most := new(big.Int).Mul(least, big.NewInt(101))
		near[i] = tolerant && most.Cmp(new(big.Int).Mul(score[i], big.NewInt(100))) >= 0
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := all[i], all[j]
		makespan, cpus := cmp.Compare(a.Makespan, b.Makespan), a.CPUs-b.CPUs
		ties := []int{score[i].Cmp(score[j]), cmp.Compare(a.Cost, b.Cost), cpus, makespan}
		switch {
		case near[i] != near[j] && near[i]:
			return -1
		case near[i] != near[j]:
			return 1
		case near[i]:
			ties = append([]int{makespan, cpus}, ties...)
		}
		if rest != nil {
			ties = append(ties, rest(i, j))
		}
		return cmp.Or(ties...)
	})
	return order
}

// Best returns the index of the candidate that Order puts first, or -1 if none is within the bounds.
func (g Goal) Best(all []Candidate, rest func(i, j int) int) int {
	order := g.Order(all, rest)
	if len(order) == 0 {
		return -1
	}
	return order[0]
}

// Bounded reports whether the goal has a deadline or a budget. Then its confidence is a share of simulated outcomes.
func (g Goal) Bounded() bool { return g.Deadline > 0 || g.Budget != nil }

// BoundNames names the goal's deadline and budget in a sentence.
func (g Goal) BoundNames() string {
	switch {
	case g.Budget == nil:
		return "the deadline"
	case g.Deadline == 0:
		return "the budget"
	}
	return "the deadline and the budget"
}

// Within reports whether figures meet the goal's deadline and budget.
func (g Goal) Within(p cost.Point) bool {
	return (g.Deadline <= 0 || p.Makespan <= time.Duration(g.Deadline)) && (g.Budget == nil || p.Cost <= g.Budget.Money)
}

// Alpha returns the weight of the cost in J; ok is false if J does not decide.
func (g Goal) Alpha() (alpha Share, ok bool) {
	switch g.Objective {
	case Makespan:
		return 0, true
	case Cost:
		return Whole, true
	case CPUs:
		return 0, false
	}
	return g.Tradeoff, true
}

// scores returns the quantity that the goal minimizes, for each candidate; tolerant reports whether differences of 1 %
// do not matter.
func (g Goal) scores(all []Candidate) (scores []*big.Int, tolerant bool) {
	alpha, weighed := g.Alpha()
	w := Weigh(alpha, all)
	for _, c := range all {
		if weighed {
			scores = append(scores, w.exact(c.Point))
		} else {
			scores = append(scores, big.NewInt(int64(c.CPUs)))
		}
	}
	return scores, weighed && alpha > 0
}
