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

// A Decision says how a plan is revised.
type Decision struct {
	Add       []plan.Pilot // their times count from the plan's beginning
	Drop      []Drop
	News      News
	Reasons   []string
	Limits    []string // that cut what would have been added
	Predicted Prediction
}

// A Drop lets a pilot go: it finishes what it runs, unless it is cancelled.
type Drop struct {
	Pilot  int // its Number
	Cancel bool
	Idle   bool // only if it still has no task
	Why    Why
}

// A Why says for what reason a pilot is let go.
type Why string

const (
	Unneeded Why = "it is not needed"
	Workless Why = "it is idle, and no task is to come"
	Budget   Why = "the budget"
	Thrift   Why = "what is left costs less without it"
	Walltime Why = "its walltime ends too soon for the next tasks"
)

// News are what people have to know.
type News string

const (
	Nothing News = ""
	Late    News = "late"    // the deadline will be missed
	InTime  News = "in time" // it will be met after all
	Broke   News = "broke"   // the budget does not suffice for what is left
	Limited News = "limited" // pilots would help that may not be asked for
)

// A Prediction is what is expected after a decision.
type Prediction struct {
	End      time.Duration // of the last task that can be run, from the plan's beginning
	Complete bool          // all tasks can
	Cost     cost.Money    // of all pilots of the plan
}

// Empty reports whether nothing is to be done, nor said.
func (d Decision) Empty() bool { return len(d.Add)+len(d.Drop) == 0 && d.News == Nothing }

// The shortest time between two decisions that change pilots: shortestPause, or a share of what is left.
const (
	shortestPause = 5 * time.Second
	pauseShare    = 50
)

// Pause is how long no decision follows one that changed pilots, when the end is expected after so long: what it has
// changed must have shown, and a plan that is revised at each task's end asks for pilots at one and drops them at the
// next.
func Pause(left time.Duration) time.Duration { return max(shortestPause, left/pauseShare) }

// Decide decides what is to change now. Its errors are defects.
func Decide(v View) (Decision, error) {
	o := expect(v)
	if len(o.left.Work.Tasks) == 0 {
		return Decision{}, nil
	}
	var err error
	d := Decision{Predicted: prediction(o)}
	switch d.Drop = o.cuts(); {
	case len(d.Drop) > 0:
		d.say("%d pilot(s) end now: holding them on would cost more than the budget of %s", len(d.Drop),
			*v.Goal.Budget)
	case v.Before.At > 0 && v.Now < v.Before.At+Pause(o.End):
		if !o.behind() {
			release(o, &d, idle(o, nil), nil)
		}
	default:
		if err = o.change(&d); err != nil && hurried(v) && errors.Is(err, context.Cause(v.Context)) {
			err = nil // the search took too long: the rest of the decision stands
		}
	}
	if len(d.Drop) == 0 {
		if d.Drop = o.drains(); len(d.Drop) > 0 {
			o.look(o.without(dropped(o, d.Drop)))
			d.Predicted = prediction(o)
			d.say("%d pilot(s) take no more tasks: the budget of %s suffices for what they run", len(d.Drop),
				*v.Goal.Budget)
		}
	}
	o.announce(&d)
	return d, err
}

// hurried reports whether there is no more time to seek anything.
func hurried(v View) bool { return v.Context != nil && v.Context.Err() != nil }

// dropped are the pilots that drops name, by their index among View.Pilots.
func dropped(o *outlook, drops []Drop) map[int]bool {
	all := map[int]bool{}
	for i, q := range o.Pilots {
		all[i] = slices.ContainsFunc(drops, func(d Drop) bool { return d.Pilot == q.Number })
	}
	return all
}

// change closes pilots that would cut what they take next, and adds or releases others.
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

// prediction is what is expected without a change.
func prediction(o *outlook) Prediction {
	return Prediction{o.Now + o.End, o.Left == 0, o.expected()}
}

// Of the time until the deadline some is kept for errors of the estimates: pilots are added when less than a seventh is
// left of it, and then so many that a quarter is. With a smaller one they would be added again and again, and the last
// time too late: at the end of a workflow there is little that more pilots can do.
const (
	leastReserve = 7
	fullReserve  = 4
)

// reserve is one part in so many of the time until the deadline.
func (o *outlook) reserve(part time.Duration) time.Duration {
	return max(0, time.Duration(o.Goal.Deadline)-o.Now) / part
}

// target is when the last task shall end: before the deadline, with a reserve unless the plan itself had none, or about
// when the plan promised where there is no deadline.
func (o *outlook) target() time.Duration {
	slack := max(o.Promise*15/100, 5*time.Second)
	deadline := time.Duration(o.Goal.Deadline)
	if deadline == 0 {
		return o.Promise + slack
	}
	return max(deadline-o.reserve(leastReserve), min(deadline, o.Promise+slack/5))
}

// behind reports whether the pilots that there are will not do what is left in time.
func (o *outlook) behind() bool { return o.Left > 0 || o.Now+o.End > o.target() }

// options have what is left planned task by task: how tasks became jobs was decided when the run began.
func options(o *outlook) planner.Options {
	return planner.Options{Clustering: &clustering.Rule{}, Shape: o.Shape, Context: o.Context}
}

// add has pilots asked for: the cheapest with which the target is met, else those with which the end is soonest, if
// they help at all.
func (o *outlook) add(d *Decision) error {
	if len(o.left.Sites) == 0 {
		limit(o, d, append([]string{"no site takes pilots"}, o.Without...))
		return nil
	}
	goal := plan.Goal{Objective: plan.Cost, Budget: o.rest()}
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
		if cut = forRest(p.Reasons[0]); o.Goal.Deadline == 0 { // the end is what was promised
			cut = fmt.Sprintf("no plan for what is left ends after %s", brief(end))
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

// forRest is why there is no plan for what is left, without the flag that would change it: times count from now there.
func forRest(reason string) string {
	reason, _, _ = strings.Cut(reason, "; --")
	reason, _, _ = strings.Cut(reason, "; a plan without --")
	return "for what is left " + reason
}

// sooner reports whether a plan for what is left ends it so much sooner that its pilots are worth asking for.
func sooner(o *outlook, p *plan.Plan) bool {
	return o.Left > 0 || o.End-time.Duration(p.Makespan) > max(time.Second, o.End/20)
}

// wanted lists the ends that pilots are added for, the best one first.
func (o *outlook) wanted() []time.Duration {
	if o.Goal.Deadline == 0 {
		return []time.Duration{o.target()}
	}
	deadline := time.Duration(o.Goal.Deadline)
	return []time.Duration{deadline - o.reserve(fullReserve), o.target(), deadline}
}

// rest is what of the budget is not spent, nor bound to be; nil if there is no budget.
func (o *outlook) rest() *cost.Amount {
	if o.Goal.Budget == nil {
		return nil
	}
	b := *o.Goal.Budget
	b.Money = max(0, b.Money-max(o.expected(), o.exposed(nil)))
	return &b
}

// ask takes over the pilots of a plan for what is left, as far as the budget allows all of them to start at once.
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
		d.say("behind: %d task(s) fit no pilot before it leaves; %d pilot(s) of %d cpus more end it after %s", o.Left,
			len(p.Pilots), p.PeakCPUs, brief(d.Predicted.End))
	default:
		d.say("behind: it would end after %s, wanted is %s; with %d pilot(s) of %d cpus more it ends after %s",
			plan.Beyond(before, brief(o.target())), brief(o.target()), len(p.Pilots), p.PeakCPUs,
			brief(d.Predicted.End))
	}
}

func brief(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// patientLooks is how many looks before a deadline it is said that it will be missed, though what might help was not
// sought to its end.
const patientLooks = 10

// outcome is what is expected instead of an end in time. The end of what can be run says nothing where tasks remain.
func outcome(o *outlook, d *Decision) string {
	if !d.Predicted.Complete {
		return fmt.Sprintf("%d task(s) fit no pilot that there is", o.Left)
	}
	return fmt.Sprintf("the end is expected after %s", plan.Beyond(d.Predicted.End, time.Duration(o.Goal.Deadline)))
}

// announce says what people have to know, once. A search that was ended has not found out whether more pilots would
// help: lateness is said when the next one has, or when the deadline is near.
func (o *outlook) announce(d *Decision) {
	deadline, before := time.Duration(o.Goal.Deadline), o.Before
	blur := max(0, d.Predicted.End-o.Now) / 50 // no estimate is exact: nothing is said of less, until it is near
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
		d.say("the budget of %s does not suffice: what no pilot takes any more waits", *o.Goal.Budget)
	}
}
