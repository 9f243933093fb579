package validator

import "github.com/corral-pilot/corral"

// A begin is the place and the time where a task of a job begins.
type begin struct {
	job, pilot, host int
	at               corral.Seconds
}

// follows reports for each task whether it begins where and when another task of its job ends. The result is nil if no
// job has several tasks.
func (c *checker) follows() (all []bool) {
	jobs := c.jobs()
	if jobs == nil {
		return nil
	}
	ends := make(map[begin]bool, len(c.plan.Schedule))
	for _, at := range c.plan.Schedule {
		if at.Task >= 0 && at.Task < len(jobs) && at.End > at.Start { // a task without duration must not follow itself
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

// jobs returns the job number of each task, or nil if each task is a job of its own.
func (c *checker) jobs() []int {
	jobs := c.problem.Work.Jobs(c.plan.Clustering)
	if jobs == nil {
		return nil
	}
	all := make([]int, len(c.problem.Work.Tasks))
	for number, members := range jobs {
		for _, i := range members {
			all[i] = number
		}
	}
	return all
}
