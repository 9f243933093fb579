package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A result judges one play.
type result struct {
	Finished int      `json:"finished_tasks"`
	Makespan *seconds `json:"makespan_s"` // null: tasks are left
	Cost     amount   `json:"cost"`
	Deadline *bool    `json:"deadline_kept"` // null: the plan has none
	Budget   *bool    `json:"budget_kept"`   // null: the plan has none
	tally
	Stranded []stranded `json:"stranded"`
	Pilots   []outcome  `json:"pilots"`
	// Where each task ran. A pilot that was present has the next number after those of the plan.
	Schedule []placement `json:"schedule,omitempty"`
}

// schedule returns the executions of all tasks that are done, by their start.
func (r *run) schedule() (all []placement) {
	for i, t := range r.tasks {
		if t.done {
			at := placement{Task: r.game.tasks[i].id, Pilot: t.where, Host: t.host, Start: t.start, End: t.end}
			all = append(all, at)
		}
	}
	slices.SortStableFunc(all, func(a, b placement) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// A stranded is a task that did not finish.
type stranded struct {
	Task   string `json:"task"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// The reasons why tasks strand.
const (
	byParent  = "a parent did not finish"
	bySize    = "no pilot has a host that is large enough"
	byTime    = "no pilot that it fits is long enough, even when fresh"
	byStart   = "no pilot that could run it started"
	byPilots  = "no pilot left that is long enough"
	byPlanned = "a pilot that could run it was never submitted"
)

// An outcome has the actual times and the cost of one of the plan's pilots.
type outcome struct {
	Pilot  int     `json:"pilot"` // index in the plan
	Submit seconds `json:"submit_s"`
	Start  seconds `json:"start_s"`
	End    seconds `json:"end_s"`
	Cost   money   `json:"cost"`
	Why    string  `json:"never_started,omitempty"` // the times are then 0
}

// result evaluates a play that is over.
func (r *run) result() result {
	x := result{Finished: len(r.tasks) - r.left, Cost: amount{Unit: r.unit}, tally: r.tally,
		Stranded: []stranded{}, Pilots: []outcome{}}
	if r.left == 0 {
		makespan := seconds(0)
		for _, t := range r.tasks {
			makespan = max(makespan, t.end)
		}
		x.Makespan = &makespan
	}
	for _, p := range r.pilots {
		if p.free {
			continue
		}
		o := outcome{Pilot: p.number, Why: cmp.Or(p.why, "it was not needed")}
		if p.started < never {
			o = outcome{p.number, p.submitted, p.started, p.ended,
				r.at[p.number].charge(p.Hosts, p.CPUs, p.ended-p.started), ""}
		}
		x.Cost.Money += o.Cost
		x.Pilots = append(x.Pilots, o)
	}
	if d := r.goal.Deadline; d > 0 {
		kept := x.Makespan != nil && *x.Makespan <= d
		x.Deadline = &kept
	}
	if b := r.goal.Budget; b != nil {
		kept := x.Cost.Money <= b.Money
		x.Budget = &kept
	}
	for i, t := range r.tasks {
		if !t.done {
			x.Stranded = append(x.Stranded, r.why(i))
		}
	}
	return x
}

// why returns the reason why a task is left, the most general one that applies.
func (r *run) why(i int) stranded {
	t := &r.game.tasks[i]
	for _, p := range t.parents {
		if !r.tasks[p].done {
			return stranded{t.id, byParent, r.game.tasks[p].id}
		}
	}
	// Each condition implies the one before it, for the same pilot.
	fits, long, started, left := false, false, false, false
	longest := seconds(0)
	for _, p := range r.pilots {
		if !t.needs.fitIn(p.bounded()) {
			continue
		}
		fits = true
		if p.free { // its time had begun before the plan, so that it says nothing about fresh pilots
			continue
		}
		longest = max(longest, r.lifetime(p)-r.hop-r.start)
		if r.capable(p, i) {
			long = true
			started = started || p.started < never
			left = left || p.state == planned
		}
	}
	switch {
	case !fits:
		return stranded{t.id, bySize, t.needs.String()}
	case !long:
		return stranded{t.id, byTime, fmt.Sprintf("it takes %s; the longest has %s", t.estimate, longest)}
	case left:
		return stranded{t.id, byPlanned, ""}
	case !started:
		return stranded{t.id, byStart, ""}
	}
	return stranded{t.id, byPilots, ""}
}

// good reports whether a play kept all that the plan promises.
func (x result) good() bool {
	kept := func(b *bool) bool { return b == nil || *b }
	return x.Makespan != nil && kept(x.Deadline) && kept(x.Budget) && x.Violations == 0
}

// A share is the part of the draws for which something holds, with its 95 % interval.
type share struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// wilson returns the share of k in n with its score interval (Wilson 1927), which stays in [0, 1] and is meaningful for
// shares near its ends.
func wilson(k, n int) share {
	const z = 1.959964 // of the normal distribution, 95 % two-sided
	p, count := float64(k)/float64(n), float64(n)
	middle := p + z*z/(2*count)
	half := z * math.Sqrt(p*(1-p)/count+z*z/(4*count*count))
	all := 1 + z*z/count
	return share{p, max(0, (middle-half)/all), min(1, (middle+half)/all)}
}

// draws summarises plays with drawn runtimes. A deadline is kept only by a play that finishes, a budget also by one
// that strands.
type draws struct {
	Number      int      `json:"number"`
	Error       float64  `json:"error"` // standard deviation of the logarithm
	Seed        uint64   `json:"seed"`
	Finished    share    `json:"finished"`
	Deadline    *share   `json:"within_deadline"`
	Budget      *share   `json:"within_budget"`
	MakespanP50 *seconds `json:"makespan_p50_s"` // of the plays that finish; null: none does
	MakespanP90 *seconds `json:"makespan_p90_s"`
	CostP50     money    `json:"cost_p50"` // of all plays
	CostP90     money    `json:"cost_p90"`
	Violations  int      `json:"plays_with_node_violations"`
}

// A lottery says how runtimes and waits are drawn.
type lottery struct {
	number int
	error  float64 // standard deviation of the logarithm of actual runtime ÷ estimate
	seed   uint64
	waits  bool // waits are drawn, too
}

// draw returns the nth draw. It depends on the seed and n alone, so that any draw can be played again. The mean factor
// is 1: exp(s·z − s²/2) with z of the standard normal distribution.
func (l lottery) draw(n, tasks, pilots int) (drawn luck) {
	source := rand.New(rand.NewPCG(l.seed, uint64(n)))
	for range tasks {
		drawn.errors = append(drawn.errors, math.Exp(l.error*source.NormFloat64()-l.error*l.error/2))
	}
	if l.waits {
		for range pilots {
			drawn.waits = append(drawn.waits, source.Float64())
		}
	}
	return drawn
}

// lots plays all draws of a lottery.
func (g *game) lots(l lottery) *draws {
	d := &draws{Number: l.number, Error: l.error, Seed: l.seed}
	finished, inTime, affordable := 0, 0, 0
	var makespans []seconds
	var costs []money
	for n := range l.number {
		x := g.play(l.draw(n, len(g.tasks), len(g.pilots))).result()
		costs = append(costs, x.Cost.Money)
		if x.Makespan != nil {
			finished++
			makespans = append(makespans, *x.Makespan)
		}
		if x.Deadline != nil && *x.Deadline {
			inTime++
		}
		if x.Budget != nil && *x.Budget {
			affordable++
		}
		if x.Violations > 0 {
			d.Violations++
		}
	}
	d.Finished = wilson(finished, l.number)
	if g.goal.Deadline > 0 {
		s := wilson(inTime, l.number)
		d.Deadline = &s
	}
	if g.goal.Budget != nil {
		s := wilson(affordable, l.number)
		d.Budget = &s
	}
	d.CostP50, d.CostP90 = quantile(costs, 0.5), quantile(costs, 0.9)
	if finished > 0 {
		half, most := quantile(makespans, 0.5), quantile(makespans, 0.9)
		d.MakespanP50, d.MakespanP90 = &half, &most
	}
	return d
}

// quantile returns the least value that the given share of all does not exceed. It sorts all.
func quantile[T cmp.Ordered](all []T, part float64) T {
	slices.Sort(all)
	return all[max(0, int(math.Ceil(part*float64(len(all))))-1)]
}
