package planner

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A planning holds the state of making one plan.
type planning struct {
	plan.Problem
	Goal   plan.Goal
	all    []plan.Task // the workflow's tasks
	tasks  *tasks
	most   int   // maximum number of cpus that can be useful at once
	shapes []int // host sizes to try, in cpus; nil: the planner chooses
	seed   uint64
	parts  int   // a pilot has at most 1/parts of a plan's hosts; 0: limited by the site only
	judge  Judge // nil: estimates are trusted
	play   Play  // nil: the list schedule is trusted

	clustering clustering.Rule
	ctx        context.Context
	jobs       [][]int // for each task of Work, the workflow's tasks in it; nil: Work contains the workflow's own tasks
}

// Options control how a plan is made.
type Options struct {
	Shape      int              // cpus per host; 0: the planner tries several
	Parts      int              // a pilot has at most 1/Parts of all hosts; 0, or if the goal limits pilots: no limit
	Seed       uint64           // for random tries; the same seed yields the same plan
	Clustering *clustering.Rule // nil: the planner chooses
	// The choices to try: each lists the slots in which all pilots must be. none: sites are used with their waits.
	Slots   [][]Slot
	Judge   Judge           // judges plans that must meet a deadline with a confidence; nil: estimates are trusted
	Play    Play            // executes plans; nil: the list schedule is trusted
	Context context.Context // cancels the search; Make then returns the context's cause; nil: never
}

// Make returns a plan that reaches a goal. An unreachable goal is not an error: the plan then has Feasible unset and
// contains the nearest feasible plan. If the problem is invalid, the error is of kind Invalid; if the context is
// cancelled, it is the context's cause.
//
// Empty lists of a plan are not nil, so that JSON shows them as [] instead of null.
func Make(problem plan.Problem, goal plan.Goal, opts Options) (*plan.Plan, error) {
	pl, err := decide(problem, goal, opts)
	for q := pl; q != nil; q = q.Nearest {
		q.Pilots, q.Front, q.Reasons = present(q.Pilots), present(q.Front), present(q.Reasons)
	}
	return pl, err
}

// present replaces a nil list by an empty one.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func newPlanning(problem plan.Problem, goal plan.Goal, opts Options) *planning {
	p := &planning{
		Problem: problem, Goal: goal, all: problem.Work.Tasks, seed: opts.Seed, parts: opts.Parts, judge: opts.Judge,
		play: opts.Play, ctx: opts.Context,
	}
	if goal.MaxPilots > 0 {
		p.parts = 0
	}
	if p.ctx == nil {
		p.ctx = context.Background()
	}
	hasten(p)
	if opts.Shape > 0 {
		p.shapes = []int{opts.Shape}
	}
	return p
}

// hasten computes the input of the list schedule from the tasks' shortest times on any site.
func hasten(p *planning) {
	quick := plan.Quickest(p.Problem)
	p.tasks, p.most = newTasks(p.Work, quick), quick.MostCPUs()
	p.tasks.begin(p.Present)
}

func decide(problem plan.Problem, goal plan.Goal, opts Options) (*plan.Plan, error) {
	if err := check(problem, goal); err != nil {
		return nil, err
	}
	if pl, err := hopeless(problem, goal, opts); pl != nil || err != nil {
		return pl, err
	}
	p := newPlanning(problem, goal, opts)
	if reason := tooLong(p, opts.Clustering); reason != "" {
		return &plan.Plan{Workflow: problem.Work.Name, Goal: goal, Reasons: []string{reason}}, nil
	}
	all := explore(p, opts)
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	var bound *int
	if len(p.Present) == 0 { // the bound counts all cpus, including those of present pilots
		bound = p.lowerBound()
	}
	if opts.Slots == nil {
		all = append(all, refine(all)...)
		all = append(all, p.narrow(all, bound)...)
	}
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	all = p.witness(all)
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	best, ok := p.choose(all)
	if !ok {
		pl := p.unreachable(all, problem, opts)
		if p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		pl.LowerBound = bound
		return pl, nil
	}
	var confidence *plan.Confidence
	if unsure(p) {
		best, confidence, ok = sure(p, all)
		if p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		if !ok {
			pl := p.unsure(best, confidence, all)
			pl.LowerBound = bound
			return pl, nil
		}
	}
	pl := best.of.finish(best)
	pl.LowerBound, pl.Confidence = bound, confidence
	pl.Front = front(all)
	pl.Reasons, pl.Limits = p.reasons(best, all), cuts(p.Sites, p.most, all)
	return pl, validator.Check(problem, pl)
}

// explore evaluates the candidates of each clustering.
func explore(p *planning, opts Options) (all []outcome) {
	for _, c := range clusterings(p, opts.Clustering) {
		q := clustered(p, c)
		if impossible(q.Problem) != "" {
			continue // a job exceeds all walltimes; single tasks are always tried
		}
		if opts.Slots != nil {
			all = append(all, q.outcomes(inSlots(q, opts.Slots))...)
		} else {
			all = append(all, q.outcomes(q.candidates())...)
			all = append(all, patient(q)...)
		}
		if p.ctx.Err() != nil {
			return nil
		}
	}
	return all
}

// outcomes evaluates candidates in parallel on all processors; the result does not depend on the number of processors.
// Once the context is cancelled, the remaining outcomes are empty and must not be used.
func (p *planning) outcomes(candidates []candidate) []outcome {
	all := make([]outcome, len(candidates))
	var wg sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, c := range candidates {
		if p.ctx.Err() != nil {
			break
		}
		turn <- struct{}{}
		wg.Go(func() {
			all[i], _ = p.evaluate(c)
			<-turn
		})
	}
	wg.Wait()
	return all
}

// finish makes the plan of an outcome, with its witness.
func (p *planning) finish(o outcome) *plan.Plan {
	if o.executed != nil {
		return o.executed
	}
	if o.played {
		played, _ := p.play(o.sketch())
		return played
	}
	s := o.schedule
	if s == nil {
		_, s = p.evaluate(o.candidate)
	}
	pl := p.draft(s, o.slack)
	_, at := s.pilots(o.slack, p.parts)
	var work time.Duration
	late := time.Duration(pl.Makespan) - s.makespan
	for i := range p.Work.Tasks {
		where := at[[2]int{int(s.line[i]), int(s.hold[i])}]
		begin, pace := s.start[i]+late, s.lines[s.line[i]].site.Pace
		var done plan.Task // part of the job so far
		var travelled time.Duration
		members := []int{i}
		if p.jobs != nil {
			members = p.jobs[i]
		}
		for _, k := range members {
			t := p.all[k]
			from := begin + pace.Speed.Takes(done.Runtime) + travelled
			done.Runtime, done.Bytes = done.Runtime+t.Runtime, done.Bytes+t.Bytes
			way := pace.Transfer.Takes(done.Bytes) - travelled
			travelled += way
			pl.Schedule = append(pl.Schedule, plan.Placement{Task: k, ID: t.ID, Kind: t.Kind, CPUs: t.Needs.CPUs,
				Pilot: where[0], Host: where[1], Start: corral.Seconds(from),
				End: corral.Seconds(begin + pace.Takes(done)), Transfer: corral.Seconds(way)})
		}
		if where[0] < len(pl.Pilots) {
			work += pace.Speed.Takes(done.Runtime) * time.Duration(p.Work.Task(i).Needs.CPUs)
		}
	}
	if held := p.measure(o.candidate, pl).held; held > 0 {
		pl.Waste = 1 - float64(work)/float64(held)
	}
	return pl
}
