package validator

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
)

// A begin is where and when a task of a job begins.
type begin struct {
	job, pilot, host int
	at               corral.Seconds
}

// follows says which tasks begin where and when another of their job ends; nil if no job has several tasks.
func (c *checker) follows() (all []bool) {
	if c.plan.Clustering.Groups == 0 {
		return nil
	}
	jobs := c.jobs()
	ends := make(map[begin]bool, len(c.plan.Schedule))
	for _, at := range c.plan.Schedule {
		if at.Task >= 0 && at.Task < len(jobs) && at.End > at.Start { // nothing follows itself
			ends[begin{jobs[at.Task], at.Pilot, at.Host, at.End}] = true
		}
	}
	all = make([]bool, len(jobs))
	for _, at := range c.plan.Schedule {
		if at.Task >= 0 && at.Task < len(jobs) {
			all[at.Task] = ends[begin{jobs[at.Task], at.Pilot, at.Host, at.Start}]
		}
	}
	return all
}

// jobs returns for each task the number of the job that it is in.
func (c *checker) jobs() []int {
	tasks := c.problem.Work.Tasks
	kinds, known := make([]int, len(tasks)), map[corral.Resources]int{} // only tasks of equal needs share a job
	for i, t := range tasks {
		k, ok := known[t.Needs]
		if !ok {
			k = len(known)
			known[t.Needs] = k
		}
		kinds[i] = k
	}
	all := make([]int, len(tasks))
	for number, members := range dag.ByLevel(c.problem.Work.Graph, c.plan.Clustering.Groups, kinds) {
		for _, i := range members {
			all[i] = number
		}
	}
	return all
}
