package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/plan"
)

// Clustering pays where the way to the next job takes long beside the jobs themselves. Below this share of the work it
// is not tried: what it could save is less than the planner knows of runtimes.
const hopsThatCount = 0.05

// clusterings are the ways to make jobs of the tasks that are tried: the one that was asked for, else each task for
// itself and, if hops count, levels of 1, 2, 4, … jobs.
func clusterings(p *planning, asked *corral.Clustering) []corral.Clustering {
	if asked != nil {
		return []corral.Clustering{*asked}
	}
	all := []corral.Clustering{{}}
	if slices.ContainsFunc(p.Present, func(q plan.Present) bool { return len(q.Running) > 0 }) {
		return all // what runs is in jobs already
	}
	hops := wayOfJob(p) * time.Duration(len(p.Work.Tasks))
	if float64(hops) < hopsThatCount*float64(p.Work.CPUTime()) {
		return all
	}
	for n := 1; n < p.Work.Graph.Width(); n *= 2 {
		all = append(all, corral.Clustering{Groups: n})
	}
	return all
}

// wayOfJob is what each job takes beside its tasks and their bytes: the way to a worker, and at the site where that is
// least the latency of its files.
func wayOfJob(p *planning) time.Duration {
	least := time.Duration(math.MaxInt64)
	for i := range p.Sites {
		least = min(least, p.Sites[i].Transfer.Latency)
	}
	return p.Cluster.Turn() + least
}

// clustered returns the planning of a workflow whose tasks are jobs of several tasks each. A job takes as long as its
// tasks one after another, and only one hop and one latency of its files.
func clustered(p *planning, c corral.Clustering) *planning {
	if c.Groups == 0 {
		return p
	}
	q := *p
	q.clustering = c
	q.jobs = dag.ByLevel(p.Work.Graph, c.Groups, kinds(p.Work.Tasks))
	q.Work = inJobs(p.Work, q.jobs)
	hasten(&q)
	return &q
}

// tooLong says why no pilot could run the jobs of a clustering that was asked for, and names the nearest that can be
// run; it returns nothing where all jobs fit, or not even each task does.
func tooLong(p *planning, asked *corral.Clustering) string {
	if asked == nil || asked.Groups == 0 {
		return ""
	}
	fit := func(groups int) bool {
		q := p.Problem
		q.Work = inJobs(q.Work, dag.ByLevel(q.Work.Graph, groups, kinds(q.Work.Tasks)))
		return impossible(q) == ""
	}
	if fit(asked.Groups) || impossible(p.Problem) != "" {
		return ""
	}
	few, enough := asked.Groups, len(p.Work.Tasks)
	for enough-few > 1 {
		if middle := (few + enough) / 2; fit(middle) {
			enough = middle
		} else {
			few = middle
		}
	}
	var most time.Duration
	for _, s := range p.Sites {
		most = max(most, longest(&s))
	}
	jobs := dag.ByLevel(p.Work.Graph, asked.Groups, kinds(p.Work.Tasks))
	j, longest := 0, time.Duration(0)
	for k, t := range inJobs(p.Work, jobs).Tasks {
		if t.Runtime > longest {
			j, longest = k, t.Runtime
		}
	}
	return fmt.Sprintf("with --clustering %s a job of %d tasks takes %s, and no pilot has more than %s for it; "+
		"--clustering %s is within reach", asked, len(jobs[j]), round(longest), round(most),
		corral.Clustering{Groups: enough})
}

// kinds numbers the different needs: only tasks of the same may share a job, as in package execution.
func kinds(tasks []plan.Task) []int {
	number := map[corral.Resources]int{}
	kind := make([]int, len(tasks))
	for i, t := range tasks {
		if _, known := number[t.Needs]; !known {
			number[t.Needs] = len(number)
		}
		kind[i] = number[t.Needs]
	}
	return kind
}

// inJobs returns work of which each task is a job of several. A job waits for each job that has a parent of one of its
// tasks; since the tasks of a job are of one level, no two jobs wait for each other. A file that several of them read
// travels once in truth; what is known of a task is a sum of bytes, so that each is taken to have its own.
func inJobs(w plan.Work, jobs [][]int) plan.Work {
	job := make([]int, len(w.Tasks))
	made := plan.Work{Name: w.Name, Tasks: make([]plan.Task, len(jobs))}
	for j, members := range jobs {
		first := w.Tasks[members[0]]
		made.Tasks[j] = plan.Task{ID: first.ID, Kind: first.Kind, Needs: first.Needs}
		for _, i := range members {
			job[i] = j
			made.Tasks[j].Runtime += w.Tasks[i].Runtime
			made.Tasks[j].Bytes += w.Tasks[i].Bytes
		}
	}
	edges := make([][2]int, 0, w.Graph.Edges())
	for i := range w.Tasks {
		for _, c := range w.Graph.Children(i) {
			edges = append(edges, [2]int{job[i], job[c]})
		}
	}
	slices.SortFunc(edges, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	var err error
	if made.Graph, err = dag.New(len(jobs), slices.Compact(edges)); err != nil {
		panic("planner: " + err.Error()) // unreachable: edges lead from a level to a later one
	}
	return made
}

// whyClustered says what the chosen clustering saves, beside the soonest and cheapest without one.
func (o outcome) whyClustered(all []outcome) []string {
	if o.of.clustering == (corral.Clustering{}) {
		return nil
	}
	alone := slices.DeleteFunc(slices.Clone(all), func(a outcome) bool {
		return a.of.clustering != (corral.Clustering{}) || a.limit != ""
	})
	said := fmt.Sprintf("%d jobs of several tasks each (%s), because each job's way to a worker takes %s",
		len(o.of.jobs), o.of.clustering, wayOfJob(o.of))
	if len(alone) == 0 {
		return []string{said}
	}
	other := slices.MinFunc(alone, order(o.of.Goal, alone))
	return []string{fmt.Sprintf("%s: one by one they would take %s and %s", said,
		round(time.Duration(other.Makespan)), plan.CoreTime(other.CoreHours))}
}
