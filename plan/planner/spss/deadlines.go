package spss

import (
	"math/big"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Deadlines assigns each task of a workflow a deadline (Juve 2012, section 6.3.3): the latest deadline of its parents,
// or begin if it has no parents, plus its runtime, plus its level's share of the slack, which is the time between begin
// and end less the critical path. A level's share is the mean, weighted by alpha, of its shares of the tasks and of the
// runtime; the shares sum exactly, in milliseconds. ok is false if there is no slack because the critical path is too
// long.
func Deadlines(w plan.Work, begin, end time.Duration, alpha plan.Share) (all []time.Duration, ok bool) {
	slack := end - begin - w.Graph.CriticalPath(w.Runtimes())
	if slack < 0 {
		return nil, false
	}
	shares, levels := slackOf(w, slack, alpha), w.Graph.Levels()
	all = make([]time.Duration, len(w.Tasks))
	for _, t := range w.Graph.Order() {
		latest := begin
		for _, p := range w.Graph.Parents(t) {
			latest = max(latest, all[p])
		}
		all[t] = latest + w.Tasks[t].Runtime + shares[levels[t]]
	}
	return all, true
}

// slackOf distributes a time among levels; each level's share is the difference of two sums that are rounded down. If
// no task has a runtime, the shares are proportional to the levels' numbers of tasks.
func slackOf(w plan.Work, slack time.Duration, alpha plan.Share) []time.Duration {
	levels := w.Graph.Levels()
	tasks, runtime := make([]int64, len(w.Graph.LevelSizes())), make([]int64, len(w.Graph.LevelSizes()))
	for t, task := range w.Tasks {
		tasks[levels[t]]++
		runtime[levels[t]] += task.Runtime.Milliseconds()
	}
	allTasks, allRuntime := int64(len(w.Tasks)), ensemble.Runtime(w).Milliseconds()
	if allRuntime == 0 {
		alpha, runtime, allRuntime = plan.Whole, tasks, allTasks
	}
	// level's part = alpha·tasks/allTasks + (1−alpha)·runtime/allRuntime, with a common denominator
	denominator := product(int64(plan.Whole), allTasks, allRuntime)
	upTo, before := new(big.Int), int64(0)
	shares := make([]time.Duration, len(tasks))
	for l := range shares {
		upTo.Add(upTo, product(int64(alpha), tasks[l], allRuntime))
		upTo.Add(upTo, product(int64(plan.Whole-alpha), runtime[l], allTasks))
		sum := new(big.Int).Mul(upTo, big.NewInt(slack.Milliseconds()))
		until := sum.Quo(sum, denominator).Int64()
		shares[l], before = time.Duration(until-before)*time.Millisecond, until
	}
	if n := len(shares); n > 0 { // the fraction of a millisecond
		shares[n-1] += slack % time.Millisecond
	}
	return shares
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}
