package execution

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
)

// A Spec is a workflow as far as decisions depend on it: which task waits for which, and what each asks of a
// worker. It has no commands, no files and no directory.
type Spec struct {
	Graph  *dag.Graph // its nodes are the indices of Tasks
	Tasks  []TaskSpec
	Groups int // clustered jobs that each level of the graph becomes; 0: every task is a job of its own
}

// A TaskSpec is what one task asks of a worker.
type TaskSpec struct {
	ID        string
	CPUs      int
	MemoryMiB int
	GPUs      int
	DiskMiB   int
	Estimate  time.Duration // assumed runtime; never 0
	Retries   int           // how often it may fail and be tried again
}

// Needs returns what the task asks of a worker beside time.
func (t *TaskSpec) Needs() corral.Resources {
	return corral.Resources{CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs, DiskMiB: t.DiskMiB}
}

// A need is what a job asks of a worker.
type need struct {
	of   corral.Resources
	time time.Duration
}

// A plan is a Spec and what follows from it.
type plan struct {
	Spec
	rank []time.Duration // :: task → its upward rank: the longest way from its start to the end of the workflow

	// The tasks in clusters: those that are released together.
	members   []int32 // the tasks, cluster by cluster
	start     []int32 // :: cluster → index of its first member; one more than there are clusters
	clusterOf []int32 // :: task → its cluster
}

// newPlan works out what never changes during a run: ranks, and which tasks are released together. Without clustering
// each task is a cluster of its own, so that there is one rule for both.
func newPlan(s Spec) *plan {
	n := len(s.Tasks)
	p := &plan{
		Spec: s, members: make([]int32, 0, n), start: make([]int32, 0, n+1), clusterOf: make([]int32, n),
	}
	estimates := make([]time.Duration, n)
	for i, t := range s.Tasks {
		estimates[i] = t.Estimate
	}
	p.rank = s.Graph.UpwardRanks(estimates)
	if s.Groups > 0 {
		for _, tasks := range dag.ByLevel(s.Graph, s.Groups, p.kinds()) {
			p.cluster(tasks...)
		}
	} else {
		for i := range s.Tasks {
			p.cluster(i)
		}
	}
	p.start = append(p.start, int32(len(p.members)))
	return p
}

// cluster makes a cluster of tasks.
func (p *plan) cluster(tasks ...int) {
	c := int32(len(p.start))
	p.start = append(p.start, int32(len(p.members)))
	for _, i := range tasks {
		p.members = append(p.members, int32(i))
		p.clusterOf[i] = c
	}
}

// tasksOf returns the tasks of a cluster. The slice has no room behind it, so that whoever appends to it copies.
func (p *plan) tasksOf(cluster int) []int32 {
	from, to := p.start[cluster], p.start[cluster+1]
	return p.members[from:to:to]
}

// kinds numbers the different needs, those of time aside: only tasks with the same may share a job.
func (p *plan) kinds() []int {
	kinds := make([]int, len(p.Tasks))
	number := make(map[corral.Resources]int)
	for i := range p.Tasks {
		n := p.Tasks[i].Needs()
		if _, known := number[n]; !known {
			number[n] = len(number)
		}
		kinds[i] = number[n]
	}
	return kinds
}

// highest is the highest upward rank of tasks: a job is as urgent as its most urgent task.
func (p *plan) highest(tasks []int32) time.Duration {
	var highest time.Duration
	for _, i := range tasks {
		highest = max(highest, p.rank[i])
	}
	return highest
}
