package planner

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A planning is the making of one plan.
type planning struct {
	plan.Problem
	Goal   plan.Goal
	all    []plan.Task // of the workflow
	tasks  *tasks
	most   int   // cpus that can be of use at once
	shapes []int // cpus of a host that are tried; none: as many as are sensible
	seed   uint64
	parts  int   // of the hosts of a plan a pilot has one at most; 0: as many as a site gives
	judge  Judge // nil: estimates are believed

	clustering clustering.Rule
	ctx        context.Context
	jobs       [][]int // of each task of Work, the workflow's tasks in it; nil: they are the workflow's own
}

// Options say how a plan is sought.
type Options struct {
	Shape      int              // cpus of each host; 0: several are tried
	Parts      int              // pilots are no larger than one part in so many of all hosts; 0: as sites give
	Seed       uint64           // of what is tried at random; the same seed makes the same plan
	Clustering *clustering.Rule // nil: the planner chooses
	Slots      [][]Slot         // choices: each has all pilots in these slots; none: sites give by their waits
	Judge      Judge            // of plans that are to meet a deadline with a confidence; nil: estimates are believed
	Context    context.Context  // ends the search, which then fails with the context's cause; nil: nothing does
}

// Make returns the plan that reaches a goal. One that cannot be reached is no error: the plan says so, by Feasible,
// and names the nearest that can. Errors are of kind Invalid, about the problem, or the cause with which
// the options' context has ended.
//
// A list of a plan that is empty is so in JSON, too, and never null.
func Make(problem plan.Problem, goal plan.Goal, opts Options) (*plan.Plan, error) {
	pl, err := decide(problem, goal, opts)
	for q := pl; q != nil; q = q.Nearest {
		q.Pilots, q.Front, q.Reasons = present(q.Pilots), present(q.Front), present(q.Reasons)
	}
	return pl, err
}

// present returns a list that is not nil.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func newPlanning(problem plan.Problem, goal plan.Goal, opts Options) *planning {
	p := &planning{
		Problem: problem, Goal: goal, all: problem.Work.Tasks, seed: opts.Seed, parts: opts.Parts, judge: opts.Judge,
		ctx: opts.Context,
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

// hasten works out what the list schedule reads of the work, from what its tasks take where they take the least time.
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
	if len(p.Present) == 0 { // the bound is one of all cpus, not of those beyond what is present
		bound = p.lowerBound()
	}
	if opts.Slots == nil {
		all = append(all, p.narrow(all, bound)...)
	}
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	best, ok := p.choose(all)
	if !ok {
		pl := p.unreachable(all)
		pl.LowerBound = bound
		return pl, nil
	}
	var confidence *plan.Confidence
	if unsure(p) {
		l := newLadder(p, all)
		best, confidence, ok = l.sure()
		if p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		if !ok {
			pl := l.unsure(best, confidence, all)
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

// explore evaluates the candidates of each clustering that is tried.
func explore(p *planning, opts Options) (all []outcome) {
	for _, c := range clusterings(p, opts.Clustering) {
		q := clustered(p, c)
		if impossible(q.Problem) != "" {
			continue // a job that no walltime holds; single tasks are always tried
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

// outcomes evaluates candidates, as many at once as there are processors; the answer does not depend on how many.
// Once the context has ended, what is not evaluated yet stays empty, and must not be used.
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
		var done plan.Task // of the job
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

// candidates are the numbers of hosts, by site and shape, that are tried.
func (p *planning) candidates() []candidate {
	var all []candidate
	if len(p.Present) > 0 {
		all = append(all, candidate{}) // what is present may suffice
	}
	for _, cpus := range p.hostSizes() {
		for _, order := range p.orders(cpus) {
			limit := 0
			for _, s := range order {
				limit += s.count
			}
			for _, n := range counts(min(limit, (p.most+cpus-1)/cpus), len(p.Work.Tasks)) {
				all = append(all, take(order, n))
			}
		}
	}
	return all
}

// Of a workflow of more than manySizes tasks each candidate costs a second or more. What few hosts hold differs little;
// it rises with the number near the most that can be of use. So coarse numbers suffice for the lower half, and the
// upper one has fine ones: those are the front.
const (
	coarseTries = 8
	fineTries   = 9
)

// counts returns the numbers of hosts that are tried of each kind, up to most: fewer, the more tasks there are.
func counts(most, tasks int) []int {
	if tasks <= manySizes {
		return steps(1, most, min(40, max(16, 400_000/max(tasks, 1))))
	}
	half := max(1, most/2)
	return slices.Compact(append(steps(1, half, coarseTries), steps(half, most, fineTries)...))
}

// steps returns about so many whole numbers from least to most, evenly by their logarithms.
func steps(least, most, tries int) []int {
	var all []int
	for k := range tries {
		part := float64(k) / float64(max(1, tries-1))
		n := int(math.Round(float64(least) * math.Pow(float64(most)/float64(least), part)))
		if len(all) == 0 || n > all[len(all)-1] {
			all = append(all, n)
		}
	}
	return all
}

// take returns the first n hosts of some shares.
func take(order []share, n int) []share {
	var some []share
	for _, s := range order {
		if s.count = min(s.count, n); s.count > 0 {
			some = append(some, s)
			n -= s.count
		}
	}
	return some
}

// manySizes is how many tasks a workflow may have so that hosts of more than two sizes are tried.
const manySizes = 50_000

// hostSizes are the numbers of cpus of a host that are tried: powers of two, as many as the widest task needs, and
// whole hosts.
func (p *planning) hostSizes() []int {
	if p.shapes != nil {
		return p.shapes
	}
	need, largest := 1, 0
	for _, n := range p.tasks.needs {
		need = max(need, n.CPUs)
	}
	for _, s := range p.Sites {
		largest = max(largest, s.Host.CPUs)
	}
	largest = min(largest, max(need, p.most))
	sizes := []int{need, largest}
	for c := 1; c < largest; c *= 4 {
		if c > need {
			sizes = append(sizes, c)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if len(p.Work.Tasks) > manySizes && len(sizes) > 2 {
		return []int{sizes[0], sizes[len(sizes)-1]} // each costs seconds
	}
	return sizes
}

// orders returns the sites' hosts of some size in each order in which they may be filled: each site alone, and all
// of them by price and by wait.
func (p *planning) orders(cpus int) [][]share {
	var each []share
	for i := range p.Sites {
		if s, ok := p.share(&p.Sites[i], cpus); ok {
			each = append(each, s)
		}
	}
	var all [][]share
	for _, s := range each {
		all = append(all, []share{s})
	}
	if len(each) < 2 {
		return all
	}
	byPrice, byWait := slices.Clone(each), slices.Clone(each)
	slices.SortStableFunc(byPrice, func(a, b share) int { return cmp.Compare(price(a), price(b)) })
	slices.SortStableFunc(byWait, func(a, b share) int { return cmp.Compare(wait(a), wait(b)) })
	return append(all, byPrice, byWait)
}

// price is what an hour of a host's cpu costs.
func price(s share) float64 {
	_, money := s.site.Tariff.Bill(plan.Pilot{Hosts: 1, CPUs: s.host.CPUs, End: corral.Seconds(time.Hour)})
	return money.Units() / float64(s.host.CPUs)
}

func wait(s share) time.Duration {
	return s.site.Wait(plan.Shape{Hosts: 1, Host: s.host, Walltime: s.site.Walltime}) + s.site.Overhead
}

// share returns the hosts of some size that a site may give; ok is false if that is none, or no task fits them.
func (p *planning) share(s *plan.Site, cpus int) (share, bool) {
	if cpus > s.Host.CPUs {
		return share{}, false
	}
	host := s.Host
	host.CPUs = cpus
	if host.MemoryMiB < plan.Unlimited {
		host.MemoryMiB = s.Host.MemoryMiB * cpus / s.Host.CPUs
		for _, n := range p.tasks.needs {
			host.MemoryMiB = max(host.MemoryMiB, n.MemoryMiB)
		}
	}
	host.GPUs = gpusFor(p.tasks.needs, s.Host, cpus)
	for _, n := range p.tasks.needs {
		if !n.FitIn(host) {
			return share{}, false
		}
	}
	count := s.CPUs / cpus
	if s.Pilots < plan.Unlimited {
		count = min(count, s.Pilots*s.Hosts)
	}
	count = min(count, withGPUs(s, host))
	return share{site: s, host: host, count: count}, count > 0
}
