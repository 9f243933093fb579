package plantest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/plantest"
)

// The seismic hazard workflow has the tasks, levels and edges of its table and figure, and the width affects only the
// wide tasks.
func TestSeismicHazard(t *testing.T) {
	t.Parallel()
	w := plantest.SeismicHazard(67)
	got := w.Graph.LevelSizes()
	if !slices.Equal(got, []int{1, 2, 2, 4017, 4017}) || w.Graph.Edges() != 2+4+2*4017+4017 {
		t.Errorf("levels of %d tasks, %d edges", got, w.Graph.Edges())
	}
	wide := 0
	for _, task := range w.Tasks {
		if task.Needs.CPUs == 67 {
			wide++
		}
	}
	if wide != 3 {
		t.Errorf("%d tasks are wide", wide)
	}
}

// A workflow of levels has the given numbers of tasks and levels, approximately the given means, parents in the
// previous level only, and depends only on its seed.
func TestLevels(t *testing.T) {
	t.Parallel()
	g := plantest.Grid{Tasks: 1003, Levels: 10, Runtime: 1000 * time.Second, Processors: 22, Parents: 2}
	w := plantest.Levels(g, 1)
	if len(w.Tasks) != g.Tasks || len(w.Graph.LevelSizes()) != g.Levels {
		t.Errorf("%d tasks in levels of %d", len(w.Tasks), w.Graph.LevelSizes())
	}
	var runtime time.Duration
	cpus := 0
	for i, task := range w.Tasks {
		runtime += task.Runtime
		cpus += task.Needs.CPUs
		parents := w.Graph.Parents(i)
		if level := w.Graph.Levels()[i]; level > 0 && len(parents) != 2 {
			t.Errorf("task %d of level %d has %d parents", i, level, len(parents))
		}
		if task.Runtime <= 0 || task.Runtime > 2*g.Runtime || task.Needs.CPUs < 1 || task.Needs.CPUs > 43 {
			t.Errorf("%+v", task)
		}
	}
	if mean := (runtime / 1003).Seconds(); mean < 950 || mean > 1050 || cpus < 20*1003 || cpus > 24*1003 {
		t.Errorf("tasks take %.0f s and %d processors in the mean", mean, cpus/1003)
	}
	again, other := plantest.Levels(g, 1), plantest.Levels(g, 2)
	if fmt.Sprint(again.Tasks) != fmt.Sprint(w.Tasks) || fmt.Sprint(other.Tasks) == fmt.Sprint(w.Tasks) {
		t.Error("it does not follow from its seed")
	}
}
