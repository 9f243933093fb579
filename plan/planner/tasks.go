package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// Tasks are a workflow as the list schedule reads it: computed once, used by each candidate.
type tasks struct {
	work    plan.Work
	quick   plan.Work          // with each task as it is where it takes the least time, see plan.Quickest
	place   []int32            // of each task in the order of priority: highest upward rank first, then topological
	byPlace []int32            // the task at each place
	needs   []corral.Resources // of each class
	class   []int32            // of each task: index in needs
	running []plan.Present     // whose tasks have begun already
}

func newTasks(w, quick plan.Work) *tasks {
	n := len(w.Tasks)
	t := &tasks{work: w, quick: quick, place: make([]int32, n), byPlace: make([]int32, n), class: make([]int32, n)}
	topological := make([]int32, n)
	for k, i := range w.Graph.Order() {
		topological[i] = int32(k)
		t.byPlace[k] = int32(i)
	}
	rank := w.Graph.UpwardRanks(quick.Runtimes())
	slices.SortFunc(t.byPlace, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(topological[a], topological[b]))
	})
	for k, i := range t.byPlace {
		t.place[i] = int32(k)
	}
	known := map[corral.Resources]int32{}
	for i, task := range w.Tasks {
		c, ok := known[task.Needs]
		if !ok {
			c = int32(len(t.needs))
			known[task.Needs] = c
			t.needs = append(t.needs, task.Needs)
		}
		t.class[i] = c
	}
	return t
}

// takes is what a task takes at least, the way of its files included.
func (t *tasks) takes(i int32) time.Duration { return t.quick.Tasks[i].Runtime }
