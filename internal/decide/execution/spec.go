package execution

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Spec contains the parts of a workflow on which decisions depend: the order of the tasks, and the resources that
// each needs. It does not contain commands, files or directories.
type Spec struct {
	Graph *dag.Graph // its nodes are the indices of Tasks
	Tasks []TaskSpec

	// Clusters lists tasks that become one job together, parents before their children. Each task is in one cluster,
	// and the graph of clusters is acyclic. If it is nil, every task is a separate job. Rules may divide clusters.
	Clusters [][]int

	Subs   []SubSpec // an inner one follows the one that contains it
	Limits []int     // :: category - 1 → maximum number of its members that run at a time
	Open   bool      // it begins without Tasks and Graph, and tasks are added: see Addition
	Losses int       // a task fails after this many workers were lost while running it; 0: never
}

// A TaskSpec describes the needs of one task, and the conditions under which it runs.
type TaskSpec struct {
	ID        string
	Kind      int32 // tasks with the same number from 1 on do the same kind of work; 0: unknown
	CPUs      int
	MemoryMiB int
	GPUs      int
	DiskMiB   int
	Estimate  time.Duration // assumed runtime; never 0
	Usual     bool          // Estimate is the run's default, because the task has none
	Retries   int           // maximum number of retries after failures
	Once      bool          // it does not begin again if its worker is lost or has to leave
	Done      bool          // done before this execution: it never runs, regardless of its parents
	Rules     *Rules        // nil: none
}

// Needs returns the resources that the task needs of a worker.
func (t *TaskSpec) Needs() corral.Resources {
	return corral.Resources{CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs, DiskMiB: t.DiskMiB}
}

// A need holds the resources and the time that a job needs of a worker.
type need struct {
	of   corral.Resources
	time time.Duration
}

// and returns the need of a job that consists of this one and then another: the maximum of each resource, and the sum
// of the times.
func (n need) and(m need) need { return need{n.of.Most(m.of), n.time + m.time} }

// A plan is a Spec and the values derived from it.
type plan struct {
	Spec
	rank  []time.Duration // :: task → its upward rank: the longest path from its start to the end of the workflow
	scope scoping

	// The tasks in clusters, which are released together.
	members   []int32 // the tasks, cluster by cluster
	start     []int32 // :: cluster → index of its first member; has one more element
	clusterOf []int32 // :: task → its cluster
	inner     bool    // some task waits for another task of its cluster
}

// newPlan derives the values that never change during a run: ranks and clusters. Without clustering, each task is a
// separate cluster, so that the same rules apply.
func newPlan(s Spec) *plan {
	n := len(s.Tasks)
	if s.Open {
		s.Graph, s.Limits = emptyGraph(), slices.Clip(s.Limits)
	}
	s.Graph = s.withoutParentsOfDone()
	p := &plan{
		Spec: s, members: make([]int32, 0, n), start: make([]int32, 0, n+1), clusterOf: make([]int32, n),
	}
	estimates := make([]time.Duration, n)
	for i, t := range s.Tasks {
		estimates[i] = t.Estimate
	}
	p.rank = s.Graph.UpwardRanks(estimates)
	scoping, err := newScoping(&p.Spec)
	if err != nil {
		panic(err) // the caller did not Check the spec
	}
	p.scope = scoping
	if s.Clusters != nil {
		for _, tasks := range s.Clusters {
			for len(tasks) > 0 { // consecutive parts do not form a cycle, since parents come first
				n := p.joining(tasks)
				p.cluster(tasks[:n]...)
				tasks = tasks[n:]
			}
		}
	} else {
		for i := range s.Tasks {
			p.cluster(i)
		}
	}
	p.start = append(p.start, int32(len(p.members)))
	p.inner = s.Clusters != nil && slices.ContainsFunc(p.members, func(i int32) bool {
		return slices.ContainsFunc(s.Graph.Parents(int(i)), func(parent int) bool {
			return p.clusterOf[parent] == p.clusterOf[i]
		})
	})
	return p
}

// emptyGraph returns a graph that one execution may extend.
func emptyGraph() *dag.Graph {
	g, err := dag.New(0, nil)
	if err != nil {
		panic(err) // unreachable
	}
	return g
}

// Jobs returns the job of each task, assuming that workers have enough time: jobs of several tasks are numbered from 1,
// and 0 is for a task that is a job alone or was done before. n is the total number of jobs.
func (s Spec) Jobs() (of []int, n int) {
	p := newPlan(s)
	of = make([]int, len(s.Tasks))
	clustered := 0
	for c := range len(p.start) - 1 {
		left := slices.DeleteFunc(slices.Clone(p.members[p.start[c]:p.start[c+1]]), func(i int32) bool {
			return s.Tasks[i].Done
		})
		if len(left) > 1 {
			clustered++
			for _, i := range left {
				of[i] = clustered
			}
		}
		n += min(1, len(left))
	}
	return of, n
}

// withoutParentsOfDone returns the graph in which tasks that were done before do not wait: the user may have marked a
// task as done although its parents have not run.
func (s *Spec) withoutParentsOfDone() *dag.Graph {
	waits := func(i int) bool { return s.Tasks[i].Done && len(s.Graph.Parents(i)) > 0 }
	none := true
	for i := range s.Tasks {
		none = none && !waits(i)
	}
	if none {
		return s.Graph
	}
	var edges [][2]int
	for i := range s.Tasks {
		if waits(i) {
			continue
		}
		for _, parent := range s.Graph.Parents(i) {
			edges = append(edges, [2]int{parent, i})
		}
	}
	g, err := dag.New(len(s.Tasks), edges)
	if err != nil {
		panic(err) // unreachable: fewer edges make no cycle
	}
	return g
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

// clustered reports whether any job has several tasks.
func (p *plan) clustered() bool { return len(p.start)-1 < len(p.Tasks) }

// tasksOf returns the tasks of a cluster. The slice's capacity equals its length, so that append copies it.
func (p *plan) tasksOf(cluster int) []int32 {
	from, to := p.start[cluster], p.start[cluster+1]
	return p.members[from:to:to]
}

// leaves reports whether none of the tasks has children.
func (p *plan) leaves(tasks []int32) bool {
	return !slices.ContainsFunc(tasks, func(i int32) bool { return len(p.Graph.Children(int(i))) > 0 })
}

// A kind holds the properties that tasks must have in common to share a job.
type kind struct {
	priority, category int
	scope              int32
}

// joining returns how many of the tasks, from the first on, the rules allow to be one job: none of them has a script or
// is final, and they have the same priority, category and scope. In a workflow with subworkflows or final tasks, none
// of them may wait for another.
func (p *plan) joining(tasks []int) int {
	alone := func(i int) bool {
		r := p.scope.rules(int32(i))
		return r.Pre != nil || r.Post != nil || r.Final
	}
	first := p.kindOf(tasks[0])
	for n, i := range tasks {
		waits := p.scope.inside != nil && slices.ContainsFunc(p.Graph.Parents(i), func(parent int) bool {
			return slices.Contains(tasks[:n], parent)
		})
		if n > 0 && (waits || alone(tasks[0]) || alone(i) || p.kindOf(i) != first) {
			return n
		}
	}
	return len(tasks)
}

func (p *plan) kindOf(i int) kind {
	r := p.scope.rules(int32(i))
	return kind{priority: r.Priority, category: r.Category, scope: p.scope.around(int32(i))}
}

// urgency returns the urgency of a job of these tasks: their common priority, then the highest rank, then the place of
// the first task in the workflow.
func (p *plan) urgency(tasks []int32) urgency {
	return urgency{p.scope.rules(tasks[0]).Priority, p.highest(tasks), tasks[0]}
}

// rankOf returns the highest upward rank of a scope's tasks.
func (p *plan) rankOf(scope int32) (rank time.Duration) {
	first, end := p.scope.tasksIn(scope)
	for i := first; i < end; i++ {
		rank = max(rank, p.rank[i])
	}
	return rank
}

// An urgency is a place in the order in which tasks are released.
type urgency struct {
	priority int
	rank     time.Duration
	place    int32
}

// level orders the most urgent first, ignoring places.
func (u urgency) level(v urgency) int {
	return cmp.Or(cmp.Compare(v.priority, u.priority), cmp.Compare(v.rank, u.rank))
}

// compare orders the most urgent first.
func (u urgency) compare(v urgency) int {
	return cmp.Or(u.level(v), cmp.Compare(u.place, v.place))
}

// highest returns the highest upward rank of tasks: a job is as urgent as its most urgent task.
func (p *plan) highest(tasks []int32) time.Duration {
	var highest time.Duration
	for _, i := range tasks {
		highest = max(highest, p.rank[i])
	}
	return highest
}
