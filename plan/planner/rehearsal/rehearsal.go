// Package rehearsal chooses an algorithm for an ensemble by playing each that comes into question beforehand, with the
// decisions that will be made in earnest: SPSS under its guard, which is best where tasks are long, DPDS and WA-DPDS,
// which are where they are short and many, each with several parameters. What is played is what is expected, and some
// outcomes that are drawn about it, so that a choice does not hang on estimates being exact. The one that does best is
// carried out.
//
// It is never worse than the best of its candidates where tasks take what they are estimated to and machines are ready
// at once. Where they are not, it errs where candidates are close to each other.
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

// A Problem is an ensemble under constraints, as far as it is known beforehand.
type Problem struct {
	Ensemble ensemble.Ensemble
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Machines cloud.Kind
	Delay    time.Duration // until a machine is ready, as expected
	Spread   sim.Spread    // of runtimes about their estimates, as expected
	Interval time.Duration // between two decisions; 0: the published one
	Leaving  time.Duration // that a machine takes to end, and is billed for; 0: none to speak of
	Once     bool          // a machine is billed for one period, with which it ends
	Shared   bool          // no task is kept for its planned machine: whatever is free takes what is next
	Draws    int           // outcomes that are drawn, besides the expected one
	Seed     uint64        // of these
}

// A Candidate is a choice, and what came of it when it was played.
type Candidate struct {
	Choice
	Policy ensemble.Policy
	Played []cloud.Outcome // the expected outcome first
}

// Choose plays all candidates and returns them, the best one first: that whose places among the candidates in the
// outcomes are best in the mean, of equal ones the cheapest as expected.
func Choose(p Problem) []Candidate {
	if p.Spread.Law == "" {
		p.Draws = 0 // all outcomes are the expected one
	}
	all := candidates(p)
	places := make([]int, len(all))
	for n := range 1 + p.Draws {
		s := p.scenario(n)
		for i := range all {
			all[i].Played = append(all[i].Played, p.valued(cloud.Online(s, all[i].Policy)))
		}
		if n == 0 && p.Draws > 0 {
			continue // what is drawn says more
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

// scenario returns what is expected, or the nth outcome that is drawn about it.
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

// valued is an outcome that counts nothing where it costs more than the budget.
func (p Problem) valued(o cloud.Outcome) cloud.Outcome {
	if o.Cost > p.Budget {
		o.Completed = ensemble.ScoreOf(make([]bool, len(p.Ensemble)))
	}
	return o
}

// candidates are the policies that are played. A static plan holds machines for as long as it likes and has each take
// a task at a time, so that there is none where they end by themselves or take more.
func candidates(p Problem) (all []Candidate) {
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

// static are the plans of SPSS.
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

// delays are with which machines may be planned: a plan that ignores a short one is late by it, and has fewer periods
// that are begun for a few minutes only.
func (p Problem) delays() []time.Duration {
	if p.Delay == 0 {
		return []time.Duration{0}
	}
	return []time.Duration{p.Delay, 0}
}

// reserves are by how much longer tasks may be planned: only where they err.
func (p Problem) reserves() []ensemble.Share {
	if p.Draws == 0 {
		return []ensemble.Share{0}
	}
	return []ensemble.Share{0, 50_000, 150_000}
}
