package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/planner/spss"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// An EnsembleOutcome is the result of simulating an ensemble.
type EnsembleOutcome struct {
	Algorithm    string         `json:"algorithm"`
	Published    bool           `json:"published,omitempty"` // simulated with the authors' rules
	Budget       cost.Amount    `json:"budget"`
	Deadline     corral.Seconds `json:"deadline_s"`
	Completed    ensemble.Score `json:"completed"`                       // 1 or 0 for each workflow, by priority
	InTime       ensemble.Score `json:"completed_by_deadline,omitempty"` // set if Completed counts admitted workflows
	Cost         cost.Amount    `json:"cost"`
	PlanCost     *cost.Amount   `json:"plan_cost,omitempty"` // cost according to a static plan
	WithinBudget bool           `json:"within_budget"`
	Makespan     corral.Seconds `json:"makespan_s"`           // end of the last task that ended by the deadline
	WithLate     corral.Seconds `json:"makespan_with_late_s"` // end of the last task, late or not
	Losses
	Workflows  []WorkflowOutcome `json:"workflows"`
	Machines   []HeldMachine     `json:"vms"`
	Candidates []Candidate       `json:"candidates,omitempty"` // alternatives of a rehearsal, the best first
	Regrets    []Regret          `json:"regrets,omitempty"`    // for each of the requested errors

	Schedule []cloud.Execution `json:"-"` // the tasks that ended, by end
}

// Losses summarizes the attempts at tasks that had no result.
type Losses struct {
	Killed int            `json:"killed_tasks"` // killed together with their machines
	Failed int            `json:"failed_tasks"`
	Lost   corral.Seconds `json:"lost_s"` // total time of these attempts
}

// A WorkflowOutcome is the result for one workflow.
type WorkflowOutcome struct {
	Name      string          `json:"name"`
	Tasks     int             `json:"tasks"`
	Completed bool            `json:"completed"`
	End       *corral.Seconds `json:"end_s"`            // end of its last task, late or not; nil: some did not end
	Reason    string          `json:"reason,omitempty"` // why the workflow was not completed
	Needs     *Needs          `json:"needs,omitempty"`  // what would complete it
}

// A HeldMachine is a machine that was held. Its cost is counted from From, whether or not it became ready.
type HeldMachine struct {
	Asked corral.Seconds  `json:"asked_s"`
	From  corral.Seconds  `json:"from_s"`
	Ready *corral.Seconds `json:"ready_s"` // nil: it ended before it was ready
	End   corral.Seconds  `json:"end_s"`
	Cost  cost.Money      `json:"cost"`
}

// A Candidate is an alternative that a rehearsal simulated.
type Candidate struct {
	Name      string         `json:"name"`
	Completed ensemble.Score `json:"completed"`
	Cost      cost.Amount    `json:"cost"`
}

// PlayEnsemble simulates an ensemble. Errors are of kind Invalid, and refer to flags as their places.
func PlayEnsemble(e ensemble.Ensemble, in EnsembleRequest) (*EnsembleOutcome, error) {
	terms, err := in.checked(e)
	if err != nil {
		return nil, err
	}
	out := in.simulate(e, terms)
	s := search{EnsembleRequest: in, ensemble: e, known: map[limits]ensemble.Score{}}
	s.left = s.plays()
	for k := range out.Workflows {
		if w := &out.Workflows[k]; !w.Completed {
			w.Needs = s.needs(k)
			w.Reason += w.Needs.text()
		}
	}
	for _, law := range in.Errors {
		out.Regrets = append(out.Regrets, in.regret(e, terms, law))
	}
	return out, nil
}

// checked returns the terms of a request, which it checks.
func (in EnsembleRequest) checked(e ensemble.Ensemble) (ensemble.Terms, error) {
	if err := e.Check(); err != nil {
		return ensemble.Terms{}, err
	}
	terms, err := in.terms()
	if err != nil {
		return terms, err
	}
	return terms, in.check(terms.Unit)
}

// simulate returns the outcome of a request that has been checked.
func (in EnsembleRequest) simulate(e ensemble.Ensemble, terms ensemble.Terms) *EnsembleOutcome {
	out := &EnsembleOutcome{Algorithm: in.Algorithm, Published: in.Published, Budget: in.Budget, Deadline: in.Deadline}
	scenario := in.scenario(e, terms)
	outcome := in.play(scenario, out)
	out.Cost = terms.Amount(outcome.Cost)
	out.WithinBudget = outcome.Cost <= in.Budget.Money
	out.Makespan, out.WithLate = corral.Seconds(outcome.Makespan), corral.Seconds(outcome.Last)
	out.Losses = Losses{outcome.Killed, outcome.Failed, corral.Seconds(outcome.Lost)}
	out.Schedule = outcome.Ran
	out.Completed = cmp.Or(out.Completed, outcome.Completed)
	for k, w := range e {
		o := WorkflowOutcome{Name: w.Name, Tasks: len(w.Tasks), Completed: out.Completed[k] == '1'}
		if o.Reason = outcome.Reasons[k]; !o.Completed && o.Reason == "" {
			o.Reason = unended(scenario, outcome, in.Budget, k)
		}
		if end := outcome.Ends[k]; end > 0 {
			o.End = (*corral.Seconds)(&end)
		}
		out.Workflows = append(out.Workflows, o)
	}
	out.Machines = []HeldMachine{}
	for _, h := range outcome.Held {
		m := HeldMachine{Asked: corral.Seconds(h.Asked), From: corral.Seconds(h.From), End: corral.Seconds(h.End),
			Cost: h.Cost}
		if !h.Unready {
			m.Ready = (*corral.Seconds)(&h.Ready)
		}
		out.Machines = append(out.Machines, m)
	}
	return out
}

// unended returns why tasks of workflow k did not end by the deadline, although no algorithm rejected the workflow.
func unended(s cloud.Scenario, o cloud.Outcome, budget cost.Amount, k int) string {
	id, takes := longest(s, k)
	switch last := s.Machines.Ends; {
	case len(o.Held) == 0:
		return fmt.Sprintf("the budget of %s does not pay for a machine", budget)
	case !slices.ContainsFunc(o.Held, func(h cloud.Holding) bool { return !h.Unready }):
		return "no machine was ready before the deadline"
	case last > 0 && takes > last:
		return fmt.Sprintf("task %.80s takes %s, but a pilot lasts %s", id, takes, last)
	}
	return "its tasks did not all end by the deadline"
}

// play simulates the algorithm, and adds to out the results that only some algorithms produce.
func (in EnsembleRequest) play(s cloud.Scenario, out *EnsembleOutcome) cloud.Outcome {
	switch in.Algorithm {
	case SPSS:
		return in.static(s, out)
	case Rehearsal:
		all := rehearsal.Choose(in.problem(s))
		for _, c := range all {
			out.Candidates = append(out.Candidates, Candidate{c.String(), c.Played[0].Completed,
				cost.Amount{Money: c.Played[0].Cost, Unit: in.Budget.Unit}})
		}
		return cloud.Online(s, all[0].Policy)
	}
	return cloud.Online(s, in.dynamic(s.Terms))
}

// problem returns what a rehearsal knows about a scenario.
func (in EnsembleRequest) problem(s cloud.Scenario) rehearsal.Problem {
	return rehearsal.Problem{Ensemble: s.Ensemble, Budget: in.Budget.Money, Deadline: s.Deadline, Terms: s.Terms,
		Machines: s.Machines, Delay: time.Duration(in.Delay), Interval: in.interval(), Once: in.once(),
		Spread: in.Error, Draws: in.Draws, Seed: in.Seed + 1}
}

// static makes a plan with SPSS and simulates it: as published, the plan is carried out literally; otherwise it is
// carried out under its guard. As published, an admitted workflow counts as completed.
func (in EnsembleRequest) static(s cloud.Scenario, out *EnsembleOutcome) cloud.Outcome {
	r := in.spss(s.Terms)
	p := r.Make(s.Ensemble)
	out.PlanCost = &cost.Amount{Money: p.Cost, Unit: in.Budget.Unit}
	g := spss.NewGuard(r, s.Ensemble, p)
	g.Interval = cmp.Or(in.interval(), g.Interval)
	switch {
	case in.lacks(guarded):
	case in.Error.Law != "":
		return cloud.Online(s, g.Shared())
	default:
		return cloud.Online(s, g)
	}
	o := cloud.Bound(s, p)
	if in.Published {
		out.Completed, out.InTime = ensemble.ScoreOf(p.Admitted), o.Completed
	}
	return o
}

// dynamic returns the rules of SPDS, DPDS or WA-DPDS.
func (in EnsembleRequest) dynamic(terms ensemble.Terms) dpds.Rules {
	of := dpds.Default
	if in.Published {
		of = dpds.Published
	}
	r := of(in.Budget.Money, time.Duration(in.Deadline), terms)
	r.Fixed, r.Aware = in.Algorithm == SPDS, in.Algorithm == WADPDS
	r.Once, r.Ends = in.once(), in.Resource == Pilots
	set(&r.High, in.High)
	set(&r.Low, in.Low)
	set(&r.Scaling, in.Scaling)
	r.Interval = cmp.Or(in.interval(), r.Interval)
	set(&r.Margin, in.Margin)
	r.Fixes = in.fixes(r.Fixes)
	return r
}

// interval returns the time between two decisions: ninety seconds as published, or less if the deadline is near; 0
// means as published.
func (in EnsembleRequest) interval() time.Duration {
	switch {
	case in.Interval != nil:
		return *in.Interval
	case in.Published:
		return 0
	}
	return min(90*time.Second, max(2*time.Second, time.Duration(in.Deadline)/100))
}

// spss returns the rules of SPSS.
func (in EnsembleRequest) spss(terms ensemble.Terms) spss.Rules {
	of := spss.Default
	if in.Published {
		of = spss.Published
	}
	r := of(in.Budget.Money, time.Duration(in.Deadline), terms)
	set(&r.Alpha, in.Alpha)
	if !in.lacks(delayed) {
		r.Delay = time.Duration(in.Delay)
	}
	switch in.Tie {
	case "first":
		r.Tie = spss.First
	case "last":
		r.Tie = spss.Last
	}
	if in.BudgetTest != "" {
		r.Below = in.BudgetTest == LessThan
	}
	if in.FitTest != "" {
		r.Strict = in.FitTest == LessThan
	}
	if r.Strict && r.Tie == spss.Tightest {
		r.Tie = spss.Last // the search with trees finds only exact fits
	}
	return r
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
