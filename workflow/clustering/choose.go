package clustering

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A Supply is the capacity available for the jobs of a run.
type Supply struct {
	CPUs int           // number of present and requested cpus; 0: unknown
	Way  time.Duration // overhead per job in addition to its tasks
	Rate float64       // maximum number of job starts per second; 0: no known limit
	Left time.Duration // maximum length of a job of several tasks that a worker accepts; 0: unknown
}

// waysThatCount is the minimum ratio of a job's overhead to its work at which clustering is tried. Clustering pays off
// if the overhead is large compared with the work; below this ratio the possible gain is smaller than the uncertainty
// of runtimes.
const waysThatCount = 0.05

// Candidates returns the rules that are worth trying if each job has the overhead way: no clustering and, if the
// overhead matters, 1, 2, 4, … jobs per level, jobs of some lengths per level, chains, and labels.
func Candidates(g *dag.Graph, tasks []Unit, way time.Duration) []Rule {
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

// lengths returns the rules for jobs of a given length within a level. The lengths are some multiples of the overhead,
// except those with which each level would fit into one job.
func lengths(g *dag.Graph, tasks []Unit, way time.Duration) (all []Rule) {
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

// enoughWays is the ratio of a job's length to its overhead that is chosen if the number of cpus is unknown: at this
// ratio the loss is 2 %.
const enoughWays = 50

// worthIt is the minimum share of the makespan that clustering must save: a smaller gain is not significant, because
// estimates are not exact.
const worthIt = 0.02

// Choose returns the rule with the shortest predicted makespan on a supply, and the reason for the choice. If the
// number of cpus is unknown, the rule makes jobs long enough that their overhead does not matter.
func Choose(g *dag.Graph, tasks []Unit, s Supply) (best Rule, why string) {
	candidates := Candidates(g, tasks, s.Way)
	if len(candidates) == 1 {
		return Rule{}, fmt.Sprintf("the overhead of %s per job is small compared with the tasks", s.Way)
	}
	if s.CPUs < 1 {
		d := s.Way * enoughWays
		if s.Left > 0 {
			d = min(d, s.Left)
		}
		return Lasting(max(d.Truncate(time.Millisecond), time.Millisecond)),
			fmt.Sprintf("the overhead of a job is %s, and the number of cpus is not known", s.Way)
	}
	alone, _ := predict(g, tasks, Rule{}, s)
	least := alone
	for _, r := range candidates[1:] {
		if makespan, ok := predict(g, tasks, r, s); ok && makespan < least && saves(makespan, alone) {
			best, least = r, makespan
		}
	}
	if best == (Rule{}) {
		return best, fmt.Sprintf("no other rule would be faster on %d cpus", s.CPUs)
	}
	return best, fmt.Sprintf("the overhead of a job is %s: %s on %d cpus instead of %s", s.Way,
		least.Round(time.Millisecond), s.CPUs, alone.Round(time.Millisecond))
}

func saves(makespan, alone time.Duration) bool {
	return float64(makespan) <= (1-worthIt)*float64(alone)
}

// predict returns the makespan of a list schedule of the jobs that a rule makes, including their overhead; ok is false
// if a job of several tasks takes longer than any worker will stay. A job that needs more cpus than the supply has is
// assumed to use all cpus of the supply.
func predict(g *dag.Graph, tasks []Unit, r Rule, s Supply) (makespan time.Duration, ok bool) {
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
