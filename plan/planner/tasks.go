package planner

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// tasks represents a workflow in the form that list schedules use; it is computed once and used for each candidate.
type tasks struct {
	work    plan.Work
	quick   plan.Work          // work with the shortest time of each task, see plan.Quickest
	place   []int32            // place of each task in order of priority: by descending upward rank, then topological
	byPlace []int32            // the task at each place
	needs   []corral.Resources // per class
	class   []int32            // per task: index in needs
	running []plan.Present     // present pilots; their running tasks have already begun
}

func newTasks(w, quick plan.Work) *tasks {
	n := len(w.Tasks)
	t := &tasks{work: w, quick: quick, place: make([]int32, n), byPlace: make([]int32, n), class: make([]int32, n)}
	for k, i := range w.Graph.ByRank(quick.Runtimes(), nil) {
		t.byPlace[k], t.place[i] = int32(i), int32(k)
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

// takes returns the shortest time of a task, including its file transfer.
func (t *tasks) takes(i int32) time.Duration { return t.quick.Tasks[i].Runtime }
