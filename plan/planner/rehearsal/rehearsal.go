// Package rehearsal chooses an algorithm for an ensemble by simulating the candidates in advance, with the same
// decisions as in the real run: SPSS under its guard, which is best for long tasks, and DPDS and WA-DPDS, which are
// best for many short tasks, each with several parameters. The simulation covers the expected outcome and some random
// ones around it, so that the choice does not depend on exact estimates. The best candidate is run.
//
// The chosen candidate is the best one if tasks take their estimated times and machines are ready at once. Otherwise
// the choice may be wrong when candidates are close to each other.
package rehearsal

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// A Problem is an ensemble with its constraints, as known in advance.
type Problem struct {
	Ensemble ensemble.Ensemble
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Machines cloud.Kind
	Delay    time.Duration // expected time until a machine is ready
	Spread   sim.Spread    // expected distribution of runtimes around their estimates
	Interval time.Duration // time between two decisions; 0: the published value
	Leaving  time.Duration // time that a machine takes to end, which is billed; 0: negligible
	Once     bool          // a machine is billed for one period, and ends with that period
	Shared   bool          // tasks are not bound to their planned machine: any free machine takes the next task
	Explain  bool          // a static plan names the budget that would admit a rejected workflow
	Draws    int           // random outcomes in addition to the expected one
	Seed     uint64        // of the random outcomes
}

// A Candidate is a choice with its simulated outcomes.
type Candidate struct {
	Choice
	Policy ensemble.Strategy
	Played []cloud.Outcome // the expected outcome first
}

// Choose simulates all candidates and returns them, the best one first: the order is by the mean rank over the
// outcomes, then by expected cost.
func Choose(p Problem) []Candidate {
	if p.Spread.Law == "" {
		p.Draws = 0 // all outcomes equal the expected one
	}
	all := Candidates(p)
	places := make([]int, len(all))
	for n := range 1 + p.Draws {
		s := p.scenario(n)
		for i := range all {
			all[i].Played = append(all[i].Played, p.valued(cloud.Online(s, all[i].Policy)))
		}
		if n == 0 && p.Draws > 0 {
			continue // random outcomes are more informative
		}
		for i := range all {
			for j := range all {
				if all[j].Played[n].Completed.Compare(all[i].Played[n].Completed) > 0 {
					places[i]++
				}
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(places[i], places[j]), cmp.Compare(all[i].Played[0].Cost, all[j].Played[0].Cost))
	})
	sorted := make([]Candidate, len(all))
	for k, i := range order {
		sorted[k] = all[i]
	}
	return sorted
}

// scenario returns the expected outcome if n is 0, otherwise the nth random one.
func (p Problem) scenario(n int) cloud.Scenario {
	s := cloud.Scenario{Ensemble: p.Ensemble, Deadline: p.Deadline, Terms: p.Terms, Machines: p.Machines}
	if p.Delay > 0 {
		s.Delay = func(int) time.Duration { return p.Delay }
	}
	if n > 0 {
		s.Err(p.Spread, p.Seed+uint64(n))
	}
	return s
}

// valued returns the outcome with a score of 0 if it costs more than the budget.
func (p Problem) valued(o cloud.Outcome) cloud.Outcome {
	if o.Cost > p.Budget {
		o.Completed = ensemble.ScoreOf(make([]bool, len(p.Ensemble)))
	}
	return o
}

// Candidates returns the policies to simulate, without outcomes. A static plan holds machines for as long as they are
// needed, and assigns one task at a time to each machine; it is therefore not applicable if machines end on their own
// or run several tasks at once.
func Candidates(p Problem) (all []Candidate) {
	var choices []Choice
	if p.Machines.Ends == 0 && p.Machines.Slots <= 1 {
		choices = p.static()
	}
	for _, algorithm := range []string{WADPDS, DPDS} {
		for _, part := range []ensemble.Share{ensemble.Whole, ensemble.Whole / 2, 2 * ensemble.Whole} {
			n := min(part.Of(p.Terms.Machines(p.Budget, p.Deadline)), int(p.Terms.Affords(p.Budget)))
			choices = append(choices, Choice{Algorithm: algorithm, Machines: p.most(n)})
		}
	}
	for _, c := range choices {
		all = append(all, Candidate{Choice: c, Policy: c.Policy(p)})
	}
	return all
}

// static returns the choices for SPSS.
func (p Problem) static() (all []Choice) {
	for _, delay := range p.delays() {
		for _, reserve := range p.reserves() {
			for _, alpha := range []ensemble.Share{700_000, 0, ensemble.Whole} {
				c := Choice{Algorithm: SPSS, Alpha: alpha, Delay: corral.Seconds(delay), Reserve: reserve, Shared: true}
				if p.Shared || p.Draws > 0 && reserve == 0 {
					all = append(all, c)
				}
				if c.Shared = false; !p.Shared {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// delays returns the delays to plan with: a plan that ignores a short delay is late by that delay, but begins fewer
// billing periods of which it would use only a few minutes.
func (p Problem) delays() []time.Duration {
	if p.Delay == 0 {
		return []time.Duration{0}
	}
	return []time.Duration{p.Delay, 0}
}

// reserves returns the shares by which to extend planned task times. A reserve helps only if runtimes differ from
// estimates.
func (p Problem) reserves() []ensemble.Share {
	if p.Draws == 0 {
		return []ensemble.Share{0}
	}
	return []ensemble.Share{0, 50_000, 150_000}
}
