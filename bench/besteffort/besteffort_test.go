package besteffort_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/besteffort"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

const h = time.Hour

// machine returns a queue with other users' jobs, each {arrival, processors, length} in hours.
func machine(processors int, jobs ...[3]int) *queue.Queue {
	var all []queue.Job
	for _, j := range jobs {
		length := time.Duration(j[2]) * h
		all = append(all, queue.Job{Submit: time.Duration(j[0]) * h, Processors: j[1], Requested: length,
			Runtime: length})
	}
	q := queue.New(queue.Machine{Processors: processors, Policy: queue.Conservative}, all)
	q.Advance(0, nil)
	return q
}

// tasks returns a workflow of tasks, each {processors, hours}, with edges.
func tasks(all [][2]int, edges ...[2]int) (w plan.Work) {
	for _, t := range all {
		w.Tasks = append(w.Tasks, plan.Task{Runtime: time.Duration(t[1]) * h, Needs: corral.Resources{CPUs: t[0]}})
	}
	w.Graph, _ = dag.New(len(all), edges)
	return w
}

func problem(w plan.Work, processors ...int) slotted.Problem {
	p := slotted.Problem{Work: w}
	for _, n := range processors {
		p.Sites = append(p.Sites, slotted.Site{Offer: slot.Offer{Processors: n}})
	}
	return p
}

// A task is submitted when its last parent has ended, and waits behind earlier jobs of other users (F17): the second
// task of a chain waits for a job that arrived at 1 h and uses the whole machine from 2 h to 5 h.
func TestChain(t *testing.T) {
	t.Parallel()
	p := problem(tasks([][2]int{{1, 2}, {1, 1}}, [2]int{0, 1}), 4)
	if got, err := besteffort.Run(p, []*queue.Queue{machine(4, [3]int{1, 4, 3})}); err != nil || got != 6*h {
		t.Errorf("makespan %s, %v; want 6 h", got, err)
	}
	if got, err := besteffort.Run(p, []*queue.Queue{machine(4)}); err != nil || got != 3*h {
		t.Errorf("on an empty machine %s, %v; want 3 h", got, err)
	}
}

// Tasks that are ready at the same time are submitted by rank: the long chain first, although its tasks have higher
// numbers.
func TestRank(t *testing.T) {
	t.Parallel()
	p := problem(tasks([][2]int{{2, 1}, {2, 2}, {2, 2}}, [2]int{1, 2}), 2)
	if got, err := besteffort.Run(p, []*queue.Queue{machine(2)}); err != nil || got != 5*h {
		t.Errorf("makespan %s, %v", got, err)
	}
}

// A task is assigned to the site with the fewest jobs, and its data is transferred there before it is submitted.
func TestSites(t *testing.T) {
	t.Parallel()
	p := problem(tasks([][2]int{{1, 1}, {1, 1}, {1, 1}}, [2]int{0, 2}, [2]int{1, 2}), 1, 1)
	p.Transfer = func(int, int) time.Duration { return 3 * h }
	if got, err := besteffort.Run(p, []*queue.Queue{machine(1), machine(1)}); err != nil || got != 5*h {
		t.Errorf("two tasks side by side, and one behind 3 h of transfer, take %s, %v", got, err)
	}
	if got, err := besteffort.Run(p, []*queue.Queue{machine(1, [3]int{0, 1, 9}), machine(1)}); err != nil || got < 3*h {
		t.Errorf("beside a machine that is busy: %s, %v", got, err)
	}
	narrow := problem(tasks([][2]int{{3, 1}}), 2)
	if _, err := besteffort.Run(narrow, []*queue.Queue{machine(2)}); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a task that is too wide: %v", err)
	}
}

// The makespan is at least as long as the longest chain and the total work require, and the queue is not changed; tasks
// without a runtime delay nothing.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Grid{Tasks: rapid.IntRange(1, 20).Draw(t, "tasks"), Levels: rapid.IntRange(1, 5).Draw(t, "levels"),
			Runtime: h, Processors: 3, Parents: 2}
		w := plantest.Levels(g, rapid.Uint64().Draw(t, "seed"))
		w.Tasks[0].Runtime = 0
		q := machine(5, [3]int{0, 4, 3}, [3]int{1, 5, 1}, [3]int{2, 2, 4})
		first, err := besteffort.Run(problem(w, 5), []*queue.Queue{q})
		again, _ := besteffort.Run(problem(w, 5), []*queue.Queue{q})
		if err != nil || first != again || first < w.Graph.CriticalPath(w.Runtimes()) || first < w.CPUTime()/5 {
			t.Fatalf("%s, then %s, %v; the longest chain takes %s", first, again, err,
				w.Graph.CriticalPath(w.Runtimes()))
		}
	})
}
