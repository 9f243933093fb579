package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Problem is the input of a planner.
type Problem struct {
	Work    Work
	Sites   []Site    // by preference among equal offers; their limits apply in addition to the present pilots
	Cluster Cluster   // runs the tasks
	Present []Present // pilots that are used before new ones are requested
	Errors  Errors    // measured errors of estimates, from which outcomes are drawn
}

// Site returns a queue of a site, or nil if it is not known.
func (p Problem) Site(name, queue string) *Site {
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Name == name && s.Queue == queue {
			return s
		}
	}
	return nil
}

// Unit returns the unit of the sites' prices, which must agree.
func (p Problem) Unit() cost.Unit { return p.Sites[0].Tariff.Unit() }

// Work is the part of a workflow on which a plan depends.
type Work struct {
	Name  string
	Graph *dag.Graph // its nodes are the indices of Tasks
	Tasks []Task
}

// A Task is the expected demand of one task.
type Task struct {
	ID      string
	Kind    string // its transformation, for reasons and for sampling outcomes
	Label   string // tasks with the same label may share a job; empty: none
	Needs   corral.Resources
	Runtime time.Duration // estimate, a whole number of milliseconds; 0 is valid
	Bytes   int64         // size of its inputs and outputs, relevant if a site has a Transfer; unknown sizes count as 0
}

// Runtimes returns the tasks' estimates.
func (w Work) Runtimes() []time.Duration {
	all := make([]time.Duration, len(w.Tasks))
	for i, t := range w.Tasks {
		all[i] = t.Runtime
	}
	return all
}

// Jobs returns the tasks of each job that a clustering rule makes, or nil if each task is a job of its own.
func (w Work) Jobs(c clustering.Rule) [][]int { return clustering.Jobs(w.Graph, w.Clusterable(), c) }

// Clusterable converts the tasks for package clustering.
func (w Work) Clusterable() []clustering.Unit {
	tasks := make([]clustering.Unit, len(w.Tasks))
	for i, t := range w.Tasks {
		tasks[i] = clustering.Unit{Needs: t.Needs, Estimate: t.Runtime, Label: t.Label}
	}
	return tasks
}

// Task returns task i, to be read or changed in place.
func (w Work) Task(i int) *Task { return &w.Tasks[i] }

// InJobs returns work whose tasks are the given jobs. A job depends on every job that contains a parent of one of its
// tasks; no clustering makes two jobs depend on each other. A job needs the maximum of its tasks' resources. A file
// that several of its tasks read is transferred only once in reality, but a task records only a sum of bytes, so the
// file is counted once per task.
func (w Work) InJobs(jobs [][]int) Work {
	made := Work{Name: w.Name, Graph: dag.Quotient(w.Graph, jobs), Tasks: make([]Task, len(jobs))}
	for j, members := range jobs {
		first := w.Tasks[members[0]]
		made.Tasks[j] = Task{ID: first.ID, Kind: first.Kind}
		for _, i := range members {
			made.Tasks[j].Needs = made.Tasks[j].Needs.Most(w.Tasks[i].Needs)
			made.Tasks[j].Runtime += w.Tasks[i].Runtime
			made.Tasks[j].Bytes += w.Tasks[i].Bytes
		}
	}
	return made
}

// Part returns the subgraph of the tasks that keep selects, and for each task its index in the subgraph, or -1 if the
// task is not kept.
func (w Work) Part(keep func(task int) bool) (part Work, index []int) {
	part, index = Work{Name: w.Name}, make([]int, len(w.Tasks))
	for i, t := range w.Tasks {
		index[i] = -1
		if keep(i) {
			index[i] = len(part.Tasks)
			part.Tasks = append(part.Tasks, t)
		}
	}
	var edges [][2]int
	for i := range w.Tasks {
		if index[i] < 0 {
			continue
		}
		for _, c := range w.Graph.Children(i) {
			if index[c] >= 0 {
				edges = append(edges, [2]int{index[i], index[c]})
			}
		}
	}
	var err error
	if part.Graph, err = dag.New(len(part.Tasks), edges); err != nil {
		panic("plan: " + err.Error()) // unreachable: a subgraph of an acyclic graph is acyclic
	}
	return part, index
}

// CPUTime returns the sum of runtime × cpus over the tasks.
func (w Work) CPUTime() time.Duration {
	var sum time.Duration
	for _, t := range w.Tasks {
		sum += t.Runtime * time.Duration(t.Needs.CPUs)
	}
	return sum
}

// MostCPUs returns the number of cpus that can be useful at once: the maximum in use if every task starts as soon as
// its parents have ended.
func (w Work) MostCPUs() int {
	type change struct {
		at   time.Duration
		cpus int
	}
	start := make([]time.Duration, len(w.Tasks))
	changes := make([]change, 0, 2*len(w.Tasks))
	for _, i := range w.Graph.Order() {
		t := w.Tasks[i]
		end := start[i] + t.Runtime
		changes = append(changes, change{start[i], t.Needs.CPUs}, change{max(end, start[i]+1), -t.Needs.CPUs})
		for _, c := range w.Graph.Children(i) {
			start[c] = max(start[c], end)
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.cpus-b.cpus) })
	now, most := 0, 1
	for _, c := range changes {
		now += c.cpus
		most = max(most, now)
	}
	return most
}

// A Site describes one queue of a site to a planner. A site with several queues is described by several Sites, which
// have the same Name and the same Pilots.
type Site struct {
	Name  string
	Queue string

	Host     corral.Resources  // the largest host available in each component; an unknown one is Unlimited
	Nodes    []corral.NodeType // of which hosts are parts; empty: not known, and only Host and CPUs limit them
	Hosts    int               // maximum per pilot
	Pilots   int               // maximum waiting or running at once
	CPUs     int               // maximum held at once
	Walltime time.Duration     // maximum; Unbounded if not known
	Pace                       // of its hosts

	Overhead time.Duration // time from the start of a pilot's job until its workers are in the cluster
	Margin   time.Duration // a pilot starts a task only if it would end at least this long before the walltime ends
	Wait     Wait          // the queue wait that plans assume
	Waits    Waits         // the distribution of queue waits; nil: only Wait is known
	Tariff   Tariff        // the price of held resources
	Left     *cost.Money   // the rest of the account's allocation; nil: unlimited or not known
	Calendar
}

// Has reports whether a task with such needs fits on a host of the site.
func (s *Site) Has(needs corral.Resources) bool {
	if !needs.FitIn(s.Host) || len(s.Nodes) == 0 {
		return needs.FitIn(s.Host)
	}
	return slices.ContainsFunc(s.Nodes, func(t corral.NodeType) bool { return t.Count > 0 && needs.FitIn(t.Resources) })
}

// ShapeOf returns the shape of one of the site's pilots.
func (s *Site) ShapeOf(q Pilot) Shape {
	host := q.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	return Shape{Hosts: q.Hosts, Host: host, Walltime: time.Duration(q.Walltime)}
}

// A Calendar holds the known future of a queue.
type Calendar struct {
	Closed []Span // maintenance periods, in which no pilot is held

	// Room is the capacity that no other job holds, or is planned to hold, from now on. A pilot that fits into it waits
	// only until its place is free. nil: the queue is not known, or was not examined.
	Room *slot.Profile
}

// Unlimited represents a number, and Unbounded a time, without a known limit; Unbounded is 30 years.
const (
	Unlimited = 1 << 30
	Unbounded = 1 << 20 * time.Second * 900
)

// ShortestWalltime is the minimum walltime of a planned pilot.
const ShortestWalltime = 10 * time.Minute

// RoundWalltime returns the walltime to request for a time that is needed: batch systems count in minutes.
func RoundWalltime(need time.Duration) time.Duration {
	return max((need+time.Minute-1)/time.Minute*time.Minute, ShortestWalltime)
}

// A Span is a half-open interval of time: it excludes To.
type Span struct{ From, To time.Duration }

// Overlaps reports whether two spans share an instant.
func (s Span) Overlaps(t Span) bool { return s.From < t.To && t.From < s.To }

// A Wait returns the queue wait that a plan assumes for a pilot of a shape.
type Wait func(Shape) time.Duration

// Waits returns the wait that the given share of pilots of a shape does not exceed: the shortest for 0, the longest for
// 1.
type Waits func(shape Shape, share float64) time.Duration

// Quantile returns the wait that the given share of the site's pilots of a shape does not exceed.
func (s *Site) Quantile(shape Shape, share float64) time.Duration {
	if s.Waits == nil {
		return s.Wait(shape)
	}
	return s.Waits(shape, share)
}

// LeaveAfter is the time for which a planned pilot stays without work. Plans rely on pilots to leave on their own when
// they are idle for longer than this.
const LeaveAfter = corral.Seconds(time.Minute)

// A Shape holds those properties of a pilot that are visible to a queue.
type Shape struct {
	Hosts    int
	Host     corral.Resources
	Walltime time.Duration
}

// size returns the pilot's number of cpus.
func (s Shape) size() int { return s.Hosts * s.Host.CPUs }

// A Cluster describes the cluster that runs the tasks.
type Cluster struct {
	Rate float64       // task starts per second; 0: no known limit
	Hop  time.Duration // time from the end of a task's last parent to the task's start on a free worker
	// Reuse is the time from the end of a task on a worker to the start on that worker of another task that has waited
	// for at least Hop−Reuse. It is shorter than Hop because HTCondor's schedd reuses the claim. 0: the same as Hop.
	Reuse time.Duration
	Leave time.Duration // time from the end of a released pilot's last task to the end of its job
}

// Turn returns the time from the end of a task on a worker until a waiting task can start on that worker.
func (c Cluster) Turn() time.Duration {
	if c.Reuse > 0 {
		return min(c.Reuse, c.Hop)
	}
	return c.Hop
}

// MinStay returns how long a pilot has to stay without work so that its workers are there until they are planned to
// leave. A pilot that stays throughout still does.
func (c Cluster) MinStay(q Pilot) corral.Seconds {
	if q.Throughout() {
		return q.Walltime
	}
	return max(0, q.End-q.Start-corral.Seconds(c.Leave))
}

// A Tariff is a site's price for holding cpus.
type Tariff cost.Tariff

// Unit returns the unit of the price.
func (t Tariff) Unit() cost.Unit { return t.Rate.Unit }

// Free reports whether holding cpus costs nothing.
func (t Tariff) Free() bool { return t.Rate.Price <= 0 }

// Weighs reports whether the price depends on the memory and the GPUs held.
func (t Tariff) Weighs() bool { return t.Rate.Weighs() }

// CoreHours is the tariff for sites without prices: it counts the core-hours held.
var CoreHours = Tariff(cost.CoreHours)

// Bill returns the billed time of a pilot and its cost.
func (t Tariff) Bill(q Pilot) (time.Duration, cost.Money) {
	held := time.Duration(q.End - q.Start)
	_, billed := t.Rate.Charge(cost.Holding{Hosts: q.Hosts, CPUs: q.HeldCPUs(), MemoryMiB: q.Hosts * q.MemoryMiB,
		GPUs: q.Hosts * q.GPUs, Held: held}, t.Billing)
	return t.Billing.Billed(held), billed
}
