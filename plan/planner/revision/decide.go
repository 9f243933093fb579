package revision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A Decision is a revision of a plan.
type Decision struct {
	Add       []plan.Pilot // their times count from the plan's beginning
	Drop      []Drop
	News      News
	Reasons   []string
	Limits    []string // limits that reduced Add
	Predicted Prediction
	Refused   *Decision // the decision if the pilots of Add cannot be requested; nil: there are none
}

// A Drop releases a pilot: it finishes its running tasks, unless it is cancelled.
type Drop struct {
	Pilot  int // its Number
	Cancel bool
	Idle   bool // only if it still has no task
	Why    Why
}

// A Why is the reason for releasing a pilot.
type Why string

const (
	Unneeded Why = "it is not needed"
	Workless Why = "it is idle, and no task is to come"
	Budget   Why = "the budget"
	Thrift   Why = "what is left costs less without it"
	Walltime Why = "its walltime ends too soon for the next tasks"
)

// News is an event of which users are notified.
type News string

const (
	Nothing News = ""
	Late    News = "late"    // the deadline will be missed
	InTime  News = "in time" // the deadline can be met again
	Broke   News = "broke"   // the budget does not cover the remaining work
	Limited News = "limited" // more pilots would help, but limits do not allow them
)

// A Prediction is the expected result after a decision.
type Prediction struct {
	End      time.Duration // end of the last task that can run, from the plan's beginning
	Complete bool          // all tasks can run
	Cost     cost.Money    // of all pilots of the plan
}

// Empty reports whether the decision neither changes nor announces anything.
func (d Decision) Empty() bool { return len(d.Add)+len(d.Drop) == 0 && d.News == Nothing }

// Parameters of Pause: the minimum, and the divisor of the remaining time.
const (
	shortestPause = 5 * time.Second
	pauseShare    = 50
)

// Pause returns the minimum time between two decisions that change pilots, given the expected remaining time. Earlier
// changes must have taken effect: a plan that is revised at the end of each task would request pilots at the end of one
// task and release them at the end of the next.
func Pause(left time.Duration) time.Duration { return max(shortestPause, left/pauseShare) }

// Decide returns the decision for a view. Without work to be done it only keeps the budget. An error is either a bug or
// an error of the planner.
func Decide(v View) (Decision, error) {
	o := expect(v)
	var err error
	d := Decision{Predicted: prediction(o), Drop: o.cuts()}
	if len(d.Drop) > 0 {
		d.say("%d pilot(s) end now: holding them longer would exceed the budget of %s", len(d.Drop),
			*v.Goal.Budget)
	}
	switch {
	case len(o.left.Work.Tasks) == 0:
		return d, nil
	case len(d.Drop) > 0:
	case v.Before.At > 0 && v.Now < v.Before.At+Pause(o.End):
		if !o.behind() {
			release(o, &d, idle(o, nil), nil)
		}
	default:
		if err = o.change(&d); err != nil && hurried(v) && errors.Is(err, context.Cause(v.Context)) {
			err = nil // the search took too long; the rest of the decision remains valid
		}
	}
	if len(d.Drop) == 0 {
		if d.Drop = o.drains(); len(d.Drop) > 0 {
			o.look(o.without(dropped(o, d.Drop)))
			d.Predicted = prediction(o)
			d.say("%d pilot(s) take no more tasks: the budget of %s covers only their running tasks", len(d.Drop),
				*v.Goal.Budget)
		}
	}
	o.announce(&d)
	if d.Refused != nil {
		o.announce(d.Refused)
	}
	return d, err
}

// hurried reports whether the time for searches is over.
func hurried(v View) bool { return v.Context != nil && v.Context.Err() != nil }

// dropped returns the pilots named in drops, by their index in View.Pilots.
func dropped(o *outlook, drops []Drop) map[int]bool {
	all := map[int]bool{}
	for i, q := range o.Pilots {
		all[i] = slices.ContainsFunc(drops, func(d Drop) bool { return d.Pilot == q.Number })
	}
	return all
}

// change closes pilots that would cut off their next tasks, and adds or releases others.
func (o *outlook) change(d *Decision) error {
	closed := o.closing()
	if len(closed) > 0 {
		o.left = o.without(closed)
		o.look(o.left)
		d.Predicted = prediction(o)
		for _, i := range slices.Sorted(maps.Keys(closed)) {
			d.Drop = append(d.Drop, Drop{Pilot: o.Pilots[i].Number, Why: Walltime})
		}
		d.say("%d pilot(s) take no more tasks: their walltime ends too soon for the next ones", len(closed))
	}
	if o.behind() {
		return o.add(d)
	}
	save(o, d, closed)
	without := idle(o, closed)
	release(o, d, without, unneeded(o, without, closed))
	return nil
}

func (d *Decision) say(format string, args ...any) {
	d.Reasons = append(d.Reasons, fmt.Sprintf(format, args...))
}

// prediction returns the expected result without a change.
func prediction(o *outlook) Prediction {
	return Prediction{o.Now + o.End, o.Left == 0, o.expected()}
}

// A part of the time until the deadline is reserved for errors of the estimates: pilots are added when the reserve
// falls below a seventh, and enough pilots are added to restore a quarter. With a smaller reserve, pilots would be
// added again and again, and finally too late, because near the end of a workflow more pilots hardly help.
const (
	leastReserve = 7
	fullReserve  = 4
)

// reserve returns the given fraction of the time until the deadline.
func (o *outlook) reserve(part time.Duration) time.Duration {
	return max(0, time.Duration(o.Goal.Deadline)-o.Now) / part
}

// target returns the desired end of the last task: before the deadline, with a reserve unless the plan had none, or,
// without a deadline, about the end that the plan predicted.
func (o *outlook) target() time.Duration {
	slack := max(o.Promise*15/100, 5*time.Second)
	deadline := time.Duration(o.Goal.Deadline)
	if deadline == 0 {
		return o.Promise + slack
	}
	return max(deadline-o.reserve(leastReserve), min(deadline, o.Promise+slack/5))
}

// behind reports whether the present pilots will not finish the remaining work in time.
func (o *outlook) behind() bool { return o.Left > 0 || o.Now+o.End > o.target() }

// options returns options without clustering, because tasks were grouped into jobs when the run began.
func options(o *outlook) planner.Options {
	return planner.Options{Clustering: &clustering.Rule{}, Shape: o.Shape, Context: o.Context}
}

// add requests pilots: the cheapest that meet the target, or else those with the earliest end, if they help at all.
func (o *outlook) add(d *Decision) error {
	if len(o.left.Sites) == 0 {
		limit(o, d, append([]string{"no site accepts pilots"}, o.Without...))
		return nil
	}
	within, none := o.bounds()
	if none != "" {
		limit(o, d, []string{none})
		return nil
	}
	goal := plan.Goal{Objective: plan.Cost, Budget: o.rest(), Bounds: within}
	var cut string
	for _, end := range o.wanted() {
		if goal.Deadline = corral.Seconds(end - o.Now); goal.Deadline <= 0 {
			continue
		}
		p, err := planner.Make(o.left, goal, options(o))
		if err != nil {
			return err
		}
		if p.Feasible {
			o.ask(d, p)
			return nil
		}
		if cut = forRest(p.Reasons[0]); o.Goal.Deadline == 0 { // the target is the predicted end
			cut = fmt.Sprintf("no plan for the remaining work ends after %s", brief(end))
		}
	}
	if goal.Objective = plan.Makespan; o.Goal.Deadline == 0 {
		goal.Objective, goal.Tradeoff = plan.Tradeoff, o.Goal.Tradeoff
	}
	goal.Deadline = 0
	p, err := planner.Make(o.left, goal, options(o))
	if err != nil {
		return err
	}
	switch {
	case !p.Feasible:
		limit(o, d, append([]string{forRest(p.Reasons[0])}, o.Without...))
		return nil
	case sooner(o, p):
		o.ask(d, p)
	}
	refused := len(d.Limits) > 0
	if cut != "" {
		d.Limits = append(append(d.Limits, cut), o.Without...)
	}
	if len(d.Add) > 0 || refused || o.Before.Limited {
		return nil
	}
	return full(o, d, goal)
}

// forRest returns the reason why there is no plan for the remaining work. It removes suggested flags, because in that
// reason times count from now.
func forRest(reason string) string {
	reason, _, _ = strings.Cut(reason, "; --")
	reason, _, _ = strings.Cut(reason, "; a plan without ")
	return "for the remaining work " + reason
}

// sooner reports whether a plan for the remaining work ends early enough to justify its pilots.
func sooner(o *outlook, p *plan.Plan) bool {
	return o.Left > 0 || o.End-time.Duration(p.Makespan) > max(time.Second, o.End/20)
}

// wanted lists the desired ends for which pilots are added, the most desirable end first.
func (o *outlook) wanted() []time.Duration {
	if o.Goal.Deadline == 0 {
		return []time.Duration{o.target()}
	}
	deadline := time.Duration(o.Goal.Deadline)
	return []time.Duration{deadline - o.reserve(fullReserve), o.target(), deadline}
}

// rest returns the part of the budget that is neither spent nor committed, or nil if there is no budget.
func (o *outlook) rest() *cost.Amount {
	if o.Goal.Budget == nil {
		return nil
	}
	b := *o.Goal.Budget
	b.Money = max(0, b.Money-max(o.expected(), o.exposed(nil)))
	return &b
}

// ask adopts the pilots of a plan for the remaining work, if the budget allows all of them to start at once.
func (o *outlook) ask(d *Decision, p *plan.Plan) {
	if len(p.Pilots) == 0 {
		return
	}
	more := make([]Pilot, len(p.Pilots))
	for i, q := range p.Pilots {
		more[i] = Pilot{Pilot: q, Phase: Queued, Tariff: o.left.Site(q.Site, q.Queue).Tariff, Began: -1}
	}
	if b := o.Goal.Budget; b != nil && o.exposed(nil, more...) > b.Money {
		d.Limits = append(d.Limits, fmt.Sprintf("the budget of %s: they could not be ended in time", *b))
		return
	}
	refused := *d
	refused.Reasons = slices.Clone(d.Reasons)
	limit(o, &refused, nil)
	d.Refused = &refused
	for _, q := range p.Pilots {
		for _, at := range []*corral.Seconds{&q.Submit, &q.Start, &q.Ready, &q.End} {
			*at += corral.Seconds(o.Now)
		}
		d.Add = append(d.Add, q)
	}
	before := o.Now + o.End
	d.Predicted.End, d.Predicted.Complete = o.Now+time.Duration(p.Makespan), true
	d.Predicted.Cost = d.Predicted.Cost.Plus(p.Cost.Money)
	switch {
	case o.Left > 0:
		d.say("behind: %d task(s) fit no pilot before it leaves; with %d more pilot(s) of %d cpus it ends after %s",
			o.Left, len(p.Pilots), p.PeakCPUs, brief(d.Predicted.End))
	default:
		d.say("behind: it would end after %s, the target is %s; with %d more pilot(s) of %d cpus it ends after %s",
			plan.Beyond(before, brief(o.target())), brief(o.target()), len(p.Pilots), p.PeakCPUs,
			brief(d.Predicted.End))
	}
}

func brief(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// patientLooks is a number of decision periods: from that long before a deadline on, lateness is announced even if the
// search for more pilots was not completed.
const patientLooks = 10

// outcome describes the expected result if it is not in time. If tasks remain, the end of the others is not relevant.
func outcome(o *outlook, d *Decision) string {
	if !d.Predicted.Complete {
		return fmt.Sprintf("%d task(s) fit no present pilot", o.Left)
	}
	return fmt.Sprintf("the end is expected after %s", plan.Beyond(d.Predicted.End, time.Duration(o.Goal.Deadline)))
}

// announce reports events to users, once each. A cancelled search does not show whether more pilots would help; in that
// case lateness is announced after a later search, or when the deadline is near.
func (o *outlook) announce(d *Decision) {
	deadline, before := time.Duration(o.Goal.Deadline), o.Before
	// No estimate is exact, so small delays are not announced until the expected end is near.
	blur := max(0, d.Predicted.End-o.Now) / 50
	late := deadline > 0 && (d.Predicted.End > deadline+blur || !d.Predicted.Complete)
	if hurried(o.View) && o.Now+patientLooks*o.Period < deadline {
		late = late && before.Late
	}
	broke := !d.Predicted.Complete && o.Goal.Budget != nil || len(d.Drop) > 0 && d.Drop[0].Cancel
	switch {
	case late && !before.Late:
		d.News = Late
		d.say("the deadline of %s will be missed: %s", o.Goal.Deadline, outcome(o, d))
	case before.Late && !late && d.Predicted.End <= deadline-o.reserve(50):
		d.News = InTime
		d.say("the deadline of %s can be met again: the end is expected after %s", o.Goal.Deadline,
			brief(d.Predicted.End))
	case broke && !before.Broke:
		d.News = Broke
		d.say("the budget of %s does not suffice: tasks that no pilot takes wait", *o.Goal.Budget)
	}
}
