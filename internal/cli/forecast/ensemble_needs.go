package forecast

import (
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// Needs are limits with which a workflow is completed. A nil field means that the requested limit suffices.
type Needs struct {
	Budget   *cost.Amount    `json:"budget,omitempty"`
	Deadline *corral.Seconds `json:"deadline_s,omitempty"`
}

// text returns the end of a reason.
func (n *Needs) text() string {
	switch {
	case n == nil:
		return ""
	case n.Deadline == nil:
		return fmt.Sprintf("; --budget %s completes it", n.Budget)
	case n.Budget == nil:
		return fmt.Sprintf("; --deadline %s completes it", time.Duration(*n.Deadline))
	}
	return fmt.Sprintf("; --budget %s --deadline %s complete it", n.Budget, time.Duration(*n.Deadline))
}

// A search looks for limits with which workflows are completed, by simulating them. It need not find the least: more
// money may complete less.
type search struct {
	EnsembleRequest
	ensemble ensemble.Ensemble
	terms    ensemble.Terms
	known    map[limits]ensemble.Score
	left     int // number of simulations that may still be made
}

type limits struct {
	budget   cost.Money
	deadline time.Duration
}

// Limits of a search: the tasks that it simulates, its simulations, and how often it doubles a limit.
const (
	mostSimulated = 4_000_000
	mostPlays     = 300
	mostDoublings = 7
)

// plays returns the number of simulations that a search may make, by the size of the ensemble.
func (s *search) plays() int {
	each := s.ensemble.Tasks()
	if s.Algorithm == Rehearsal {
		each *= 10 * (1 + s.Draws)
	}
	return min(mostPlays, mostSimulated/each)
}

// completes reports whether workflow k is completed with the given limits; false also means that it is unknown.
func (s *search) completes(k int, l limits) bool {
	score, ok := s.known[l]
	if !ok {
		if s.left--; s.left < 0 || l.deadline > year {
			return false
		}
		in := s.EnsembleRequest
		in.Budget.Money, in.Deadline = l.budget, corral.Seconds(l.deadline)
		in.Record = false
		if out := in.simulate(s.ensemble, s.terms); out.WithinBudget {
			score = out.Completed
		}
		s.known[l] = score
	}
	return score != "" && score[k] == '1'
}

// needs returns limits with which workflow k is completed: another budget if that suffices, else another deadline, else
// both. It returns nil if it finds none.
func (s *search) needs(k int) *Needs {
	now := limits{s.Budget.Money, time.Duration(s.Deadline)}
	money := func(deadline time.Duration) (cost.Money, bool) {
		return least(now.budget, s.terms.Price, func(m cost.Money) bool { return s.completes(k, limits{m, deadline}) })
	}
	if m, ok := money(now.deadline); ok {
		return &Needs{Budget: &cost.Amount{Money: m, Unit: s.Budget.Unit}}
	}
	d, ok := least(now.deadline, time.Second, func(d time.Duration) bool {
		return s.completes(k, limits{now.budget, d})
	})
	if ok {
		return &Needs{Deadline: (*corral.Seconds)(&d)}
	}
	d = (now.deadline + s.ensemble.Bounds(s.terms).MostDeadline + time.Duration(s.Delay)).Round(time.Second)
	if m, ok := money(d); ok {
		return &Needs{&cost.Amount{Money: m, Unit: s.Budget.Unit}, (*corral.Seconds)(&d)}
	}
	return nil
}

// least returns a multiple of unit above from that is good: it doubles from until a value is good, and then halves the
// interval below it. If values above a good one are good as well, it is the least.
func least[T ~int64](from, unit T, good func(T) bool) (best T, ok bool) {
	up := func(x T) T { return (x + unit - 1) / unit * unit }
	low := from
	for n := 1; !ok; n++ {
		if n > mostDoublings || from > math.MaxInt64>>(mostDoublings+1) {
			return 0, false
		}
		if best = up(from<<n + unit); good(best) {
			ok = true
		} else {
			low = best
		}
	}
	for {
		middle := up(low + (best-low)/2)
		if middle >= best {
			middle = up(low + 1)
		}
		if middle >= best || middle <= low {
			return best, true
		}
		if good(middle) {
			best = middle
		} else {
			low = middle
		}
	}
}

// A Regret compares an algorithm with the best candidate in hindsight where runtimes differ from their estimates.
type Regret struct {
	Error     string         `json:"error"`
	Completed ensemble.Score `json:"completed"` // zeros if the budget is exceeded
	Cost      cost.Amount    `json:"cost"`
	Best      ensemble.Score `json:"best"`
	By        string         `json:"by"`     // the candidate with the best score
	Regret    float64        `json:"regret"` // difference of the scores: a workflow of priority p counts 2^−p
}

// regret simulates the algorithm and all candidates of a rehearsal in the same outcome of a law of errors.
func (in EnsembleRequest) regret(e ensemble.Ensemble, terms ensemble.Terms, law sim.Spread) Regret {
	in.Error, in.Errors = law, nil
	s := in.scenario(e, terms)
	valued := func(o cloud.Outcome) ensemble.Score {
		if o.Cost > in.Budget.Money {
			return ensemble.ScoreOf(make([]bool, len(e)))
		}
		return o.Completed
	}
	own := in.play(s, &EnsembleOutcome{})
	r := Regret{Error: law.String(), Completed: valued(own), Cost: terms.Amount(own.Cost), By: in.Algorithm}
	r.Best = r.Completed
	for _, c := range rehearsal.Candidates(in.problem(s)) {
		if score := valued(cloud.Online(s, c.Policy)); score.Compare(r.Best) > 0 {
			r.Best, r.By = score, c.String()
		}
	}
	r.Regret = r.Best.Exponential() - r.Completed.Exponential()
	return r
}
