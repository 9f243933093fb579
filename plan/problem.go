package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Problem is what a plan is made for.
type Problem struct {
	Work    Work
	Sites   []Site    // in the order in which equal offers are preferred; what they give beyond what is present
	Cluster Cluster   // that runs the tasks
	Present []Present // pilots that are used before others are asked for
}

// Site returns what is known of a queue of a site, nil if nothing is.
func (p Problem) Site(name, queue string) *Site {
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Name == name && s.Queue == queue {
			return s
		}
	}
	return nil
}

// Unit is what the sites' prices are in, if they agree.
func (p Problem) Unit() cost.Unit { return p.Sites[0].Tariff.Unit() }

// Work is a workflow as far as a plan depends on it.
type Work struct {
	Name  string
	Graph *dag.Graph // its nodes are the indices of Tasks
	Tasks []Task
}

// A Task is what one task is expected to take.
type Task struct {
	ID      string
	Kind    string // its transformation, for reasons and for drawing outcomes
	Label   string // tasks of the same may share a job; empty: none
	Needs   corral.Resources
	Runtime time.Duration // estimate, a whole number of milliseconds; 0 is valid
	Bytes   int64         // of its inputs and outputs, which travel where a site has a Transfer; those not known are 0
}

// Runtimes returns the tasks' estimates.
func (w Work) Runtimes() []time.Duration {
	all := make([]time.Duration, len(w.Tasks))
	for i, t := range w.Tasks {
		all[i] = t.Runtime
	}
	return all
}

// Jobs returns the tasks of each job that a clustering makes, nil if each task is one.
func (w Work) Jobs(c clustering.Rule) [][]int { return clustering.Jobs(w.Graph, w.Clusterable(), c) }

// Clusterable are the tasks as a clustering knows them.
func (w Work) Clusterable() []clustering.Task {
	tasks := make([]clustering.Task, len(w.Tasks))
	for i, t := range w.Tasks {
		tasks[i] = clustering.Task{Needs: t.Needs, Estimate: t.Runtime, Label: t.Label}
	}
	return tasks
}

// Task returns task i, to be read or changed in place.
func (w Work) Task(i int) *Task { return &w.Tasks[i] }

// InJobs returns work of which each task is a job of several. A job waits for each job that has a parent of one of its
// tasks; no clustering makes two jobs wait for each other. It needs what the largest of its tasks does. A file that
// several of them read travels once in truth; what is known of a task is a sum of bytes, so that each is taken to have
// its own.
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

// Part returns the tasks that are to be kept, with what they have to wait for among them, and for each task its index
// there; -1 for one that is not kept.
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
		panic("plan: " + err.Error()) // unreachable: a part of a graph without cycles has none
	}
	return part, index
}

// CPUTime returns the sum over the tasks of runtime × cpus.
func (w Work) CPUTime() time.Duration {
	var sum time.Duration
	for _, t := range w.Tasks {
		sum += t.Runtime * time.Duration(t.Needs.CPUs)
	}
	return sum
}

// MostCPUs is how many cpus can be of use at once: what runs side by side at most if every task starts as soon as its
// parents have ended.
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

// A Site is what a plan knows of one queue of one site. A site with several queues is several of these, which share
// its name and its Pilots.
type Site struct {
	Name  string
	Queue string

	Host     corral.Resources // the largest host that may be asked for; a component that is not known is Unlimited
	Hosts    int              // most of one pilot
	Pilots   int              // most that wait or run at once
	CPUs     int              // most that are held at once
	Walltime time.Duration    // longest; Unbounded if none is known
	Pace                      // of its hosts

	Overhead time.Duration // from the start of a pilot's job to its workers in the cluster
	Margin   time.Duration // before the end of the walltime, when a pilot takes no task that would not end before it
	Wait     Wait          // in the queue, as it is planned with
	Waits    Waits         // in the queue, as they are spread; nil: Wait is all that is known
	Tariff   Tariff        // what holding costs
	Left     *cost.Money   // of the account's allocation; nil: not limited, or not known
	Calendar
}

// A Calendar is what a queue has planned.
type Calendar struct {
	Closed []Span // maintenance: no pilot is held then

	// Room is what nobody else holds, or is going to, from now on: a pilot that fits there does not wait beyond that.
	// nil: the queue is not known, or not looked at.
	Room *availability.Profile
}

// Unlimited stands for a number without a limit that is known, Unbounded for such a time: 30 years.
const (
	Unlimited = 1 << 30
	Unbounded = 1 << 20 * time.Second * 900
)

// A Span is a time from its beginning to before its end.
type Span struct{ From, To time.Duration }

// Overlaps reports whether two spans share an instant.
func (s Span) Overlaps(t Span) bool { return s.From < t.To && t.From < s.To }

// A Wait returns how long a pilot of a shape waits in a site's queue, as a plan assumes it.
type Wait func(Shape) time.Duration

// Waits returns the wait that a share of a site's pilots of a shape does not exceed; a share of 0 asks for the shortest
// wait, 1 for the longest.
type Waits func(shape Shape, share float64) time.Duration

// Quantile returns the wait that a share of a site's pilots of a shape does not exceed.
func (s *Site) Quantile(shape Shape, share float64) time.Duration {
	if s.Waits == nil {
		return s.Wait(shape)
	}
	return s.Waits(shape, share)
}

// LeaveAfter is how long a planned pilot stays without work. A plan counts on its pilots to leave by themselves at a
// pause that is longer than what it holds them for, and this is that time.
const LeaveAfter = corral.Seconds(time.Minute)

// A Shape is what a queue sees of a pilot.
type Shape struct {
	Hosts    int
	Host     corral.Resources
	Walltime time.Duration
}

// A Cluster is what a plan knows of the cluster that runs the tasks.
type Cluster struct {
	Rate float64       // tasks a second that it can start; 0: no limit is known
	Hop  time.Duration // from the end of a task's last parent to its start on a worker that is free
	// Reuse is from a task's end at a worker to the start of another there that has waited for at least Hop−Reuse, as
	// HTCondor's schedd uses a claim again; 0: as long as Hop.
	Reuse time.Duration
	Leave time.Duration // from the end of the last task of a pilot that is let go to the end of its job
}

// Turn returns from a task's end at a worker until one that waited can start there.
func (c Cluster) Turn() time.Duration {
	if c.Reuse > 0 {
		return min(c.Reuse, c.Hop)
	}
	return c.Hop
}

// A Tariff says what holding cpus costs at a site.
type Tariff cost.Tariff

// Unit is what the price is in.
func (t Tariff) Unit() cost.Unit { return t.Rate.Unit }

// Free reports whether what is held costs nothing.
func (t Tariff) Free() bool { return t.Rate.Price <= 0 }

// CoreHours is the tariff where nothing has a price: it counts the core-hours that are held.
var CoreHours = Tariff(cost.CoreHours)

// Bill returns for how long a pilot is billed, and what it costs.
func (t Tariff) Bill(q Pilot) (time.Duration, cost.Money) {
	held := time.Duration(q.End - q.Start)
	_, billed := t.Rate.Charge(cost.Holding{Hosts: q.Hosts, CPUs: q.HeldCPUs(), Held: held}, t.Billing)
	return t.Billing.Billed(held), billed
}
