package clustering

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A Supply is what there is for the jobs of a run.
type Supply struct {
	CPUs int           // at hand, with those that were asked for; 0: not known
	Way  time.Duration // what each job takes beside its tasks
	Rate float64       // jobs a second that can be started; 0: no limit is known
	Left time.Duration // no worker takes a job of several tasks that is longer; 0: not known
}

// Clustering pays where the way to the next job takes long beside the jobs themselves. Below this share of the work it
// is not tried: what it could save is less than is known of runtimes.
const waysThatCount = 0.05

// Candidates are the rules that are worth trying where each job takes way beside its tasks: each task for itself and,
// if that counts, levels of 1, 2, 4, … jobs and of jobs of some lengths, chains, and what is labelled.
func Candidates(g *dag.Graph, tasks []Task, way time.Duration) []Rule {
	all := []Rule{{}}
	var work time.Duration
	for i := range tasks {
		work += tasks[i].Estimate * time.Duration(max(1, tasks[i].Needs.CPUs))
	}
	if float64(way)*float64(len(tasks)) < waysThatCount*float64(work) {
		return all
	}
	for n := 1; n < g.Width(); n *= 2 {
		all = append(all, Levels(n))
	}
	for _, r := range append(lengths(g, tasks, way), Rule{Kind: Vertical}, Rule{Kind: ByLabel}) {
		if len(Jobs(g, tasks, r)) < len(tasks) {
			all = append(all, r)
		}
	}
	return all
}

// lengths are those of the jobs of a level that are tried: some times the way of one, unless each level fits in one job
// of that length.
func lengths(g *dag.Graph, tasks []Task, way time.Duration) (all []Rule) {
	work, levels := make([]time.Duration, len(g.LevelSizes())), g.Levels()
	for i := range tasks {
		work[levels[i]] += tasks[i].Estimate
	}
	most := slices.Max(append(work, 0))
	for times := time.Duration(8); times <= 512; times *= 4 {
		if d := (way * times).Truncate(time.Millisecond); d >= time.Millisecond && d < most {
			all = append(all, Lasting(d))
		}
	}
	return all
}

// enoughWays is how much longer than its way a job is made where nothing is known of the cpus: then 2 % are lost.
const enoughWays = 50

// worthIt is what a clustering must save of the makespan: less says nothing, because estimates are not exact.
const worthIt = 0.02

// Choose returns the rule that promises the shortest makespan on a supply, and why. Where its cpus are not known jobs
// are so long that their ways do not count.
func Choose(g *dag.Graph, tasks []Task, s Supply) (best Rule, why string) {
	candidates := Candidates(g, tasks, s.Way)
	if len(candidates) == 1 {
		return Rule{}, fmt.Sprintf("the %s to a worker are little beside the tasks", s.Way)
	}
	if s.CPUs < 1 {
		d := s.Way * enoughWays
		if s.Left > 0 {
			d = min(d, s.Left)
		}
		return Lasting(max(d.Truncate(time.Millisecond), time.Millisecond)),
			fmt.Sprintf("a job's way to a worker takes %s, and it is not known how many cpus there will be", s.Way)
	}
	alone, _ := Predict(g, tasks, Rule{}, s)
	least := alone
	for _, r := range candidates[1:] {
		if makespan, ok := Predict(g, tasks, r, s); ok && makespan < least && saves(makespan, alone) {
			best, least = r, makespan
		}
	}
	if best == (Rule{}) {
		return best, fmt.Sprintf("no other rule would be sooner on %d cpus", s.CPUs)
	}
	return best, fmt.Sprintf("a job's way to a worker takes %s: %s on %d cpus instead of %s", s.Way,
		least.Round(time.Millisecond), s.CPUs, alone.Round(time.Millisecond))
}

func saves(makespan, alone time.Duration) bool {
	return float64(makespan) <= (1-worthIt)*float64(alone)
}

// Predict returns the makespan of a list schedule of the jobs that a rule makes, each with its way; ok is false if one
// of several tasks is longer than a worker stays. A job that needs more cpus than there are is taken to have them all.
func Predict(g *dag.Graph, tasks []Task, r Rule, s Supply) (makespan time.Duration, ok bool) {
	jobs := Jobs(g, tasks, r)
	if jobs == nil {
		jobs = make([][]int, len(tasks))
		for i := range jobs {
			jobs[i] = []int{i}
		}
	}
	took, cpus := make([]time.Duration, len(jobs)), make([]int, len(jobs))
	for k, members := range jobs {
		for _, i := range members {
			took[k] += tasks[i].Estimate
			cpus[k] = min(max(1, cpus[k], tasks[i].Needs.CPUs), s.CPUs)
		}
		if s.Left > 0 && len(members) > 1 && took[k] > s.Left {
			return 0, false
		}
		took[k] += s.Way
	}
	makespan, _ = dag.ListSchedule(dag.Quotient(g, jobs), took, cpus, s.CPUs)
	if s.Rate > 0 {
		makespan = max(makespan, time.Duration(float64(len(jobs))/s.Rate*float64(time.Second)))
	}
	return makespan, true
}
