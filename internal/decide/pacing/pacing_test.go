package pacing

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// TestAt: tasks 0 and 1 precede task 2, which precedes task 3. Each takes ten minutes.
func TestAt(t *testing.T) {
	t.Parallel()
	graph, err := dag.New(4, [][2]int{{0, 2}, {1, 2}, {2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	const minute = time.Minute
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	done, ready := execution.Progress{State: corral.TaskDone}, execution.Progress{State: corral.TaskReady}
	waiting := execution.Progress{State: corral.TaskWaiting}
	since := func(ago time.Duration) execution.Progress {
		return execution.Progress{State: corral.TaskRunning, Since: now.Add(-ago)}
	}
	for _, tt := range []struct {
		name  string
		tasks []execution.Progress
		first []int
		lead  time.Duration
		want  time.Duration
		stuck bool
	}{
		{"its task is ready", []execution.Progress{done, done, ready, waiting}, []int{2}, minute, 0, false},
		{"its task is over", []execution.Progress{done, done, done, since(0)}, []int{2}, minute, 0, false},
		{"a parent runs and will end within the lead", []execution.Progress{done, since(8 * minute), waiting, waiting},
			[]int{2}, 3 * minute, 0, false},
		{"a parent runs, and ends later", []execution.Progress{done, since(5 * minute), waiting, waiting}, []int{2}, minute,
			4 * minute, false},
		{"a parent runs longer than estimated", []execution.Progress{done, since(15 * minute), waiting, waiting}, []int{2},
			minute, 0, false},
		{"a parent runs longer than estimated, and a task between takes its time",
			[]execution.Progress{done, since(15 * minute), waiting, waiting}, []int{3}, minute, 9 * minute, false},
		{"a parent has not started", []execution.Progress{ready, since(0), waiting, waiting}, []int{2}, minute, 9 * minute, false},
		{"the first of its tasks counts", []execution.Progress{done, since(5 * minute), waiting, waiting}, []int{3, 2},
			minute, 4 * minute, false},
		{"it is not postponed by a moment", []execution.Progress{done, since(9*minute + 57*time.Second), waiting, waiting},
			[]int{2}, 0, Hold, false},
		{"it has no tasks", []execution.Progress{ready, since(0), waiting, waiting}, nil, minute, 0, false},
		{"nothing runs", []execution.Progress{done, ready, waiting, waiting}, []int{2}, minute, 0, true},
		{"nothing runs yet", []execution.Progress{done, ready, waiting, waiting}, []int{2}, minute, 9 * minute, false},
	} {
		r := State{Graph: graph, Estimate: func(int) time.Duration { return 10 * minute }, Now: now,
			Progress: func(i int) execution.Progress { return tt.tasks[i] }, Stuck: tt.stuck}
		if got := r.At(Later{tt.first, tt.lead, now.Add(-minute)}, now).Sub(now); got != tt.want {
			t.Errorf("%s: submitted in %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestPostponed: a pilot is submitted earlier than it was postponed to if its tasks are ready earlier, but not before its
// planned time, and it is not moved by a moment.
func TestPostponed(t *testing.T) {
	t.Parallel()
	graph, err := dag.New(2, [][2]int{{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	const minute = time.Minute
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name                   string
		state                  corral.TaskState
		ran, at, planned, want time.Duration
	}{
		{"its task is ready", corral.TaskDone, 0, 5 * minute, -minute, 0},
		{"its task is ready before the planned time", corral.TaskDone, 0, 5 * minute, minute, minute},
		{"its task is ready earlier than expected", corral.TaskRunning, 7 * minute, 5 * minute, -minute, 2 * minute},
		{"its task is ready later than expected", corral.TaskRunning, 2 * minute, 5 * minute, -minute, 7 * minute},
		{"a moment", corral.TaskRunning, 4 * minute, 5*minute + Period, -minute, 5*minute + Period},
	} {
		child := execution.Progress{State: corral.TaskWaiting}
		if tt.state == corral.TaskDone {
			child.State = corral.TaskReady
		}
		r := State{Graph: graph, Estimate: func(int) time.Duration { return 10 * minute }, Now: now,
			Progress: func(i int) execution.Progress {
				return []execution.Progress{{State: tt.state, Since: now.Add(-tt.ran)}, child}[i]
			}}
		got := r.At(Later{[]int{1}, minute, now.Add(tt.planned)}, now.Add(tt.at)).Sub(now)
		if got != tt.want {
			t.Errorf("%s: submitted in %s, want %s", tt.name, got, tt.want)
		}
	}
}
