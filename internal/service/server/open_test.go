package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

func openRun() api.NewRun { return api.NewRun{Open: true, WorkflowName: "jobs"} }

// TestOpenRun: tasks are added, listed by number and awaited, and the run is closed, all through the client.
func TestOpenRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	r := must(f.CreateRun(t.Context(), openRun(), ""))(t)
	if !r.Open || !must(f.Run(t.Context(), r.ID))(t).Open {
		t.Errorf("run %+v is not open", r)
	}
	task := api.NewTask{Name: "one", Argv: []string{"true"}, Attributes: map[string]string{"account": "physics"}}
	want := api.AddedTasks{First: 1, Count: 1}
	for range 2 {
		if got := must(f.AddTask(t.Context(), r.ID, task, "key"))(t); got != want {
			t.Errorf("AddTask = %v, want %v", got, want)
		}
	}
	array := api.NewTask{Argv: []string{"true"}, Elements: 3, After: []api.Condition{{Task: 1, When: api.WhenEnded}}}
	if got := must(f.AddTask(t.Context(), r.ID, array, ""))(t); got != (api.AddedTasks{First: 2, Count: 3}) {
		t.Errorf("AddTask = %v", got)
	}
	job := <-f.bench.submitted
	_, err := f.WaitTasks(t.Context(), r.ID, []int{1}, time.Millisecond)
	wantKind(t, "a wait that is over too early", err, corral.Timeout, "")
	waited := later(func() error {
		_, err := f.WaitTasks(t.Context(), r.ID, []int{1}, time.Minute)
		return err
	})
	f.bench.end(t, job, execution.Failed)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	var seen []string
	for _, t := range must(f.QueryTasks(t.Context(), r.ID, api.TaskQuery{Numbers: []int{1, 3, 4, 99}}))(t) {
		seen = append(seen, fmt.Sprint(t.Number, t.Name, t.Array, t.Element, t.State, t.Attributes["account"]))
	}
	if diff := cmp.Diff([]string{"1one0 0failedphysics", "32 1ready", "42 2ready"}, seen); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if closed := must(f.CloseRun(t.Context(), r.ID))(t); closed.State != corral.RunRunning {
		t.Errorf("closed %+v", closed)
	}
	_, err = f.AddTask(t.Context(), r.ID, task, "")
	wantKind(t, "adding to a closed run", err, corral.Conflict, "")
	if again := must(f.AddTask(t.Context(), r.ID, task, "key"))(t); again != want {
		t.Errorf("a repetition after the close = %v, want %v", again, want)
	}
}

// TestBadOpenRuns: each mistake is reported with its place.
func TestBadOpenRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	r := must(f.CreateRun(t.Context(), openRun(), ""))(t)
	for _, tc := range []struct {
		task  api.NewTask
		kind  corral.Kind
		place string
	}{
		{api.NewTask{}, corral.Invalid, "argv"},
		{api.NewTask{Argv: []string{"a\xff"}}, corral.Invalid, "argv"},
		{api.NewTask{Argv: []string{"a"}, Elements: 10_000_000}, corral.Unsatisfiable, "elements"},
		{api.NewTask{Argv: []string{"a"}, After: []api.Condition{{Task: 1, When: api.WhenEnded}}}, corral.Unsatisfiable, "after[0]"},
	} {
		_, err := f.AddTask(t.Context(), r.ID, tc.task, "")
		wantKind(t, fmt.Sprintf("AddTask(%+v)", tc.task), err, tc.kind, tc.place)
	}
	for what, in := range map[string]api.NewRun{
		"workflow":      {Open: true, WorkflowName: "jobs", Workflow: []byte(chain)},
		"workflow_name": {Open: true},
		"open":          {Open: true, WorkflowName: "jobs", SourceDir: "/"},
		"clustering":    {Open: true, WorkflowName: "jobs", Options: corral.RunOptions{Clustering: "vertical"}},
		"options.open":  {Workflow: []byte(chain), WorkflowName: "chain", Options: corral.RunOptions{Open: true}},
	} {
		_, err := f.CreateRun(t.Context(), in, "")
		wantKind(t, "a run with a wrong "+what, err, corral.Invalid, what)
	}
	if tasks := must(f.RunTasks(t.Context(), r.ID))(t); len(tasks) != 0 {
		t.Errorf("tasks %+v, want none", tasks)
	}
}
