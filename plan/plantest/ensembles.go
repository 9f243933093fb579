package plantest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Three returns the worked example of three workflows a, b and c, each with one task followed by three tasks, and one
// task after these (Malawski, Juve, Deelman and Nabrzyski, Future Generation Computer Systems 48,
// 2015). It is used with a deadline of 6 hours and a budget of 18 machine-hours.
func Three() ensemble.Ensemble {
	return ensemble.Ensemble{
		Diamond("a", 70, []int{95, 110, 100}, 160),
		Diamond("b", 70, []int{75, 90, 60}, 100),
		Diamond("c", 60, []int{45, 50, 65}, 55),
	}
}

// Diamond returns a workflow of one task, its children, and one common child of these; the parameters are the runtimes
// in minutes. Tasks are named after their runtimes.
func Diamond(name string, first int, middle []int, last int) plan.Work {
	w := plan.Work{Name: name}
	add := func(minutes int) {
		w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("%s%d", name, minutes), Kind: name,
			Needs: corral.Resources{CPUs: 1}, Runtime: time.Duration(minutes) * time.Minute})
	}
	add(first)
	var edges [][2]int
	for i, m := range middle {
		add(m)
		edges = append(edges, [2]int{0, i + 1}, [2]int{i + 1, len(middle) + 1})
	}
	add(last)
	w.Graph = graph(len(w.Tasks), edges)
	return w
}

// Random returns an ensemble of up to the given number of workflows of up to the given number of tasks. Each task
// depends on up to three earlier ones and takes up to two hours; some take no time.
func Random(rng *rand.Rand, workflows, tasks int) (e ensemble.Ensemble) {
	for k := range 1 + rng.IntN(workflows) {
		w := plan.Work{Name: fmt.Sprintf("w%d", k)}
		var edges [][2]int
		longest := 1 + rng.IntN(120*60*1000)
		for i := range 1 + rng.IntN(tasks) {
			takes := max(0, rng.IntN(longest+longest/8)-longest/8)
			w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprintf("t%d", i), Kind: fmt.Sprintf("k%d", rng.IntN(3)),
				Needs: corral.Resources{CPUs: 1}, Runtime: time.Duration(takes) * time.Millisecond})
			for range rng.IntN(4) {
				if i > 0 {
					edges = append(edges, [2]int{rng.IntN(i), i})
				}
			}
		}
		w.Graph = graph(len(w.Tasks), edges)
		e = append(e, w)
	}
	return e
}

func graph(tasks int, edges [][2]int) *dag.Graph {
	g, err := dag.New(tasks, edges)
	if err != nil {
		panic("drawn: " + err.Error()) // unreachable: tasks depend on earlier ones only
	}
	return g
}
