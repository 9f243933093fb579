package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Six equal tasks, of which two run at a time, take three times their estimates. The first two begin without a
// correction. When one task has ended, Corral's rule expects twice the estimate; when k have, (3k + 1) ÷ (k + 1) times.
func TestMisses(t *testing.T) {
	t.Parallel()
	g, err := dag.New(6, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := replayed{&workflow.Workflow{Graph: g, Tasks: make([]workflow.Task, 6)}, make([]int32, 6),
		slices.Repeat([]float64{10}, 6)}
	for i := range r.flow.Tasks {
		r.flow.Tasks[i].Runtime = 30 * time.Second
	}
	misses := missesOf([]replayed{r}, 2)
	var tasks float64
	for _, factor := range []float64{1, 1, 4. / 2, 7. / 3, 10. / 4, 13. / 5} {
		tasks += (3 - factor) / 3 / 6
	}
	var rest float64
	for _, factor := range []float64{4. / 2, 7. / 3, 10. / 4, 13. / 5} { // four to one had not begun
		rest += (3 - factor) / 3 / 4
	}
	if got := misses[0]; got.tasks != 2./3 || math.Abs(got.rest-2./3) > 1e-12 {
		t.Errorf("without a correction %v", got)
	}
	if got := misses[1]; math.Abs(got.tasks-tasks) > 1e-12 || math.Abs(got.rest-rest) > 1e-12 {
		t.Errorf("corrected %v, want %v and %v", got, tasks, rest)
	}
}
