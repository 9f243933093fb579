package forecast

import (
	"fmt"
	"math"
	"strings"
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
	Walltime *corral.Seconds `json:"walltime_s,omitempty"` // of pilots
}

// text returns the end of a reason.
func (n *Needs) text() string {
	if n == nil {
		return ""
	}
	var flags []string
	if n.Budget != nil {
		flags = append(flags, "--budget "+n.Budget.String())
	}
	if n.Deadline != nil {
		flags = append(flags, "--deadline "+n.Deadline.String())
	}
	if n.Walltime != nil {
		flags = append(flags, "--walltime "+n.Walltime.String())
	}
	verb := "complete"
	if len(flags) == 1 {
		verb = "completes"
	}
	return fmt.Sprintf("; %s %s it", strings.Join(flags, " "), verb)
}

// A search looks for limits with which workflows are completed, by simulating them. It need not find the least: more
// money may complete less.
type search struct {
	EnsembleRequest
	ensemble ensemble.Ensemble
	known    map[limits]ensemble.Score
	left     int // number of simulations that may still be made
}

type limits struct {
	budget             cost.Money
	deadline, walltime time.Duration
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
		in.Budget.Money, in.Deadline, in.Walltime = l.budget, corral.Seconds(l.deadline), corral.Seconds(l.walltime)
		in.Record = false
		terms, err := in.terms()
		if err != nil {
			return false
		}
		if out := in.simulate(s.ensemble, terms); out.WithinBudget {
			score = out.Completed
		}
		s.known[l] = score
	}
	return score != "" && score[k] == '1'
}

// needs returns limits with which workflow k is completed: another budget if that suffices, else another deadline, else
// both. If a task takes longer than a pilot lasts, a longer walltime is among them. It returns nil if it finds none.
func (s *search) needs(k int) *Needs {
	now := limits{s.Budget.Money, time.Duration(s.Deadline), s.lasting(k)}
	n := &Needs{}
	if walltime := corral.Seconds(now.walltime); walltime > s.Walltime {
		if n.Walltime = &walltime; s.completes(k, now) {
			return n
		}
	}
	in := s.EnsembleRequest
	in.Walltime = corral.Seconds(now.walltime)
	terms, err := in.terms()
	if err != nil {
		return nil
	}
	money := func(deadline time.Duration) bool {
		m, ok := least(now.budget, terms.Price, func(m cost.Money) bool {
			return s.completes(k, limits{m, deadline, now.walltime})
		})
		n.Budget = &cost.Amount{Money: m, Unit: s.Budget.Unit}
		return ok
	}
	if money(now.deadline) {
		return n
	}
	d, ok := least(now.deadline, time.Second, func(d time.Duration) bool {
		return s.completes(k, limits{now.budget, d, now.walltime})
	})
	if ok {
		n.Budget, n.Deadline = nil, (*corral.Seconds)(&d)
		return n
	}
	d = now.deadline + in.ample(s.ensemble, terms)
	if n.Deadline = (*corral.Seconds)(&d); money(d) {
		return n
	}
	return nil
}

// lasting returns the walltime of pilots that last for each task of workflow k: the requested one, or a longer one in
// whole minutes. It is 0 for machines without a walltime.
func (s *search) lasting(k int) time.Duration {
	walltime := time.Duration(s.Walltime)
	if s.Resource == Pilots {
		_, takes := longest(s.scenario(s.ensemble, ensemble.Terms{}), k)
		walltime = max(walltime, (takes + time.Minute - 1).Truncate(time.Minute))
	}
	return walltime
}

// longest returns the task of workflow k that takes the longest time, which is its estimate or, if it is longer, its
// runtime in a scenario.
func longest(s cloud.Scenario, k int) (id string, takes time.Duration) {
	for t, task := range s.Ensemble[k].Tasks {
		runtime := task.Runtime
		if s.Runtime != nil {
			runtime = max(runtime, s.Runtime(k, t))
		}
		if runtime > takes {
			id, takes = task.ID, runtime
		}
	}
	return id, takes
}

// ample returns a time in which an ensemble is completed if the money lasts: that of all critical paths and of all work
// on the largest number of machines, with the delays of machines that replace others. Twice that is returned if
// machines or tasks may take longer than expected.
func (in EnsembleRequest) ample(e ensemble.Ensemble, terms ensemble.Terms) time.Duration {
	s := in.scenario(e, terms)
	work := time.Duration(0)
	for _, w := range e {
		work += ensemble.Runtime(w)
	}
	d := e.Bounds(terms).MostDeadline + work/time.Duration(max(1, s.Machines.Most*s.Machines.Slots))
	delays := time.Duration(1)
	if s.Machines.Ends > 0 {
		delays += d / s.Machines.Ends
	}
	if d += delays * time.Duration(in.Delay); in.Error.Law != "" || in.Failures > 0 || s.Machines.Ends > 0 {
		d *= 2
	}
	return d.Round(time.Second)
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
