package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// A step is one call of a Builder.
type step func(*workflow.Builder) error

func at(file string, line int) workflow.Place { return workflow.Place{File: file, Line: line} }

func add(t workflow.Task, at workflow.Place) step {
	return func(b *workflow.Builder) error { return b.Add(t, at) }
}

func edge(parent, child string, at workflow.Place) step {
	return func(b *workflow.Builder) error { b.Edge(parent, child, at); return nil }
}

func file(id string, bytes int64, at workflow.Place) step {
	return func(b *workflow.Builder) error { return b.File(id, bytes, at) }
}

// build applies the steps and returns the warnings and the error.
func build(wf *workflow.Workflow, opts workflow.Options, steps ...step) ([]workflow.Warning, error) {
	b := workflow.NewBuilder(wf, opts)
	for _, s := range steps {
		if err := s(b); err != nil {
			return b.Warnings, err
		}
	}
	err := b.Build(at("end", 9))
	return b.Warnings, err
}

// TestBuilderCompletes: a workflow built by a program contains all data that ranks and a run require.
func TestBuilderCompletes(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Name: "w"}
	b := workflow.NewBuilder(wf, workflow.Options{Strict: true})
	b.FileOrder = true
	b.Edge("a", "c", workflow.Place{}) // the tasks follow
	for _, task := range []workflow.Task{
		{ID: "a", Argv: []string{"true"}, Outputs: []string{"x", "x"}, Estimate: time.Second},
		{
			ID: "b", Name: "use", Argv: []string{"true"}, Inputs: []string{"x", "own", "x"}, Resources: corral.Resources{CPUs: 2},
			Estimate: 2 * time.Second,
		},
		{ID: "c", Argv: []string{"true"}},
	} {
		if err := b.Add(task, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if i, ok := b.Index("b"); i != 1 || !ok {
		t.Errorf(`Index("b") = %d, %v`, i, ok)
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	want := []workflow.Task{
		{ID: "a", Name: "a", Argv: []string{"true"}, Outputs: []string{"x"}, Resources: corral.Resources{CPUs: 1}, Estimate: time.Second},
		{
			ID: "b", Name: "use", Argv: []string{"true"}, Inputs: []string{"x", "own"}, Resources: corral.Resources{CPUs: 2},
			Estimate: 2 * time.Second,
		},
		{ID: "c", Name: "c", Argv: []string{"true"}, Resources: corral.Resources{CPUs: 1}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	ranks := wf.Graph.UpwardRanks(wf.Estimates(4 * time.Second))
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 2 * time.Second, 4 * time.Second}, ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"own"}, wf.OwnInputs()); diff != "" {
		t.Errorf("OwnInputs (-want +got):\n%s", diff)
	}
	if err := wf.Runnable(); err != nil {
		t.Error(err)
	}
}

// task returns a step that adds a task which writes the given files.
func task(id string, at workflow.Place, outputs ...string) step {
	return add(workflow.Task{ID: id, Outputs: outputs}, at)
}

// reads returns a step that adds a task which reads a file.
func reads(id, file string, at workflow.Place) step {
	return add(workflow.Task{ID: id, Inputs: []string{file}}, at)
}

// Errors name the place that the reader passed for the offending item, in any file.
func TestBuilderRefuses(t *testing.T) {
	t.Parallel()
	a, b := task("a", at("f", 1), "x"), task("b", at("f", 2))
	for want, steps := range map[string][]step{
		"end:9: the workflow has no tasks": {},
		"f:3: the task has no id":          {a, task("", at("f", 3))},
		`g:1: task "a": another task has the same id (f:1)`: {
			a, b, task("a", at("g", 1)),
		},
		"g:1: the workflow has more than 3 tasks": {
			a, b, task("c", at("f", 3)), task("d", at("g", 1)),
		},
		`g:1: file "x" is written by two tasks, a and c; the workflow can be planned but not run (and 1 more like it)`: {
			a, task("c", at("g", 1), "y", "x"), task("d", at("g", 2), "y"),
		},
		"f:7: the file has no id": {
			a, file("", 1, at("f", 7)),
		},
		`f:8: file "x" is listed with two sizes, 1 and 2 bytes`: {
			a, file("x", 1, at("f", 7)), file("x", 2, at("f", 8)),
		},
		`f:8: task "a": its parent "z" does not exist`: {
			edge("z", "a", at("f", 8)), a,
		},
		`f:8: task "a": its child "z" does not exist`: {
			edge("a", "z", at("f", 8)), a,
		},
		"f:1: the tasks form a cycle: a -> b -> a": {
			edge("b", "a", at("f", 8)), a, b, edge("a", "b", at("f", 9)),
		},
		"f:2: the tasks form a cycle: b -> b": {
			a, b, edge("b", "b", at("f", 8)),
		},
		`g:2: task "d" reads "y", which is written only by a task that comes after it, task "c"; ` +
			`the workflow can be planned but not run`: {
			edge("d", "c", at("g", 1)), task("c", at("g", 0), "y"), reads("d", "y", at("g", 2)),
		},
		`g:2: task "c" reads "x", which task "a" writes, but does not come after it; it becomes its child`: {
			a, reads("c", "x", at("g", 2)),
		},
	} {
		_, err := build(&workflow.Workflow{Name: "w"}, workflow.Options{MaxTasks: 3, Strict: true}, steps...)
		if corral.KindOf(err) != corral.Invalid || err.Error() != want {
			t.Errorf("Build = %v, want %s", err, want)
		}
	}
	_, err := build(&workflow.Workflow{}, workflow.Options{}, a)
	if want := "end:9: the workflow has no name"; corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("Build = %v, want %s", err, want)
	}
	nowhere := workflow.Place{}
	_, err = build(&workflow.Workflow{Name: "made"}, workflow.Options{}, task("a", nowhere), task("a", nowhere))
	if want := `task "a": another task has the same id (workflow made)`; err == nil || err.Error() != want {
		t.Errorf("Add = %v, want %s", err, want)
	}
}

// TestBuilderOrdersSeveralWriters: a reader comes after one of the tasks that write its file. If the edges do not
// ensure this, the reader is ordered after all writers except those that come after it.
func TestBuilderOrdersSeveralWriters(t *testing.T) {
	t.Parallel()
	two := []step{task("a", at("f", 1), "x"), task("b", at("f", 2), "x"), reads("c", "x", at("f", 3))}
	middle := []step{task("m", at("f", 4)), edge("b", "m", at("f", 4)), edge("m", "c", at("f", 4))}
	back := edge("c", "b", at("f", 4)) // the second writer comes after the reader
	for _, tc := range []struct {
		name            string
		more            []step
		edges, warnings int
	}{
		{"no edge", nil, 2, 2},
		{"child of one", []step{edge("b", "c", at("f", 4))}, 1, 1},
		{"after one", middle, 2, 1},
		{"between them", []step{edge("a", "c", at("f", 4)), back}, 2, 1},
		{"before the second", []step{back}, 2, 2}, // a child of the first
		{"before the first", []step{edge("c", "a", at("f", 4))}, 2, 2},
	} {
		wf := &workflow.Workflow{Name: "w"}
		b := workflow.NewBuilder(wf, workflow.Options{})
		for _, s := range slices.Concat(two, tc.more) {
			if err := s(b); err != nil {
				t.Fatal(err)
			}
		}
		err := b.Build(at("end", 9))
		if err != nil || wf.Graph.Edges() != tc.edges || len(b.Warnings) != tc.warnings {
			t.Errorf("%s: %v, %v, want %d edges and %d warnings", tc.name, err, b.Warnings, tc.edges, tc.warnings)
		}
		says := `task "c" reads "x", which task "b" writes, but does not come after it; it becomes its child`
		if tc.name == "before the first" && (len(b.Warnings) < 2 || b.Warnings[1].Message != says) {
			t.Errorf("%s: %v, want: %s", tc.name, b.Warnings, says)
		}
	}
}

// If all writers of a file come after a task that reads it, the specified order is kept: such a workflow has a valid
// structure, but cannot be run.
func TestBuilderKeepsTheOrderThatFilesContradict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []step
		edges int
		says  string
	}{
		{"one writer", []step{task("a", at("f", 1), "x"), reads("c", "x", at("f", 3)), edge("c", "b", at("f", 4)),
			task("b", at("f", 2)), edge("b", "a", at("f", 4))}, 2, `f:3: task "c" reads "x", which is written only by a task that comes after it, task "a"`},
		{"two writers", []step{task("a", at("f", 1), "x"), task("b", at("f", 2), "x"), reads("c", "x", at("f", 3)),
			edge("c", "a", at("f", 4)), edge("c", "b", at("f", 4))}, 2, `f:3: task "c" reads "x", which is written only by a task that comes after it, task "a"`},
		{"and one that lacks an order", []step{task("a", at("f", 1), "x"), task("d", at("f", 2), "y"),
			add(workflow.Task{ID: "c", Inputs: []string{"x", "y"}}, at("f", 3)), edge("c", "a", at("f", 4))}, 2,
			`f:3: task "c" reads "x", which is written only by a task that comes after it, task "a"`},
	} {
		wf := &workflow.Workflow{Name: "w"}
		warnings, err := build(wf, workflow.Options{}, c.steps...)
		if err != nil || wf.Graph.Edges() != c.edges {
			t.Errorf("%s: Build = %v, want %d edges", c.name, err, c.edges)
			continue
		}
		said := c.says + "; the workflow can be planned but not run"
		if !slices.ContainsFunc(warnings, func(w workflow.Warning) bool { return w.String() == said }) {
			t.Errorf("%s: warnings %v, want %s", c.name, warnings, said)
		}
		for i := range wf.Tasks {
			wf.Tasks[i].Argv = []string{"true"}
		}
		if c.name == "two writers" { // two writers are refused separately
			wf.Tasks[1].Outputs = nil
		}
		if err := wf.Runnable(); err == nil || err.Error() != c.says {
			t.Errorf("%s: Runnable = %v, want %s", c.name, err, c.says)
		}
	}
	_, err := build(&workflow.Workflow{Name: "w"}, workflow.Options{},
		add(workflow.Task{ID: "a", Inputs: []string{"x"}, Outputs: []string{"y"}}, at("f", 1)),
		add(workflow.Task{ID: "b", Inputs: []string{"y"}, Outputs: []string{"x"}}, at("f", 2)))
	if want := "f:1: the tasks form a cycle: a -> b -> a"; err == nil || err.Error() != want {
		t.Errorf("files of two tasks that wait for each other: Build = %v, want %s", err, want)
	}
}

// Names are shortened to a length that is suitable for lists and directories, and ids in messages are shortened.
func TestBuilderCutsWhatIsLong(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Name: strings.Repeat("ä", 100_000)}
	warnings, err := build(wf, workflow.Options{}, task("a", at("f", 1)))
	if err != nil || wf.Name != strings.Repeat("ä", 200) || len(warnings) != 1 ||
		warnings[0].String() != "end: the name of the workflow has 100000 characters; it is shortened to 200" {
		t.Errorf("Build = %v, a name of %d bytes, warnings %v", err, len(wf.Name), warnings)
	}
	long := strings.Repeat("ä", 100_000)
	_, err = build(&workflow.Workflow{Name: "w"}, workflow.Options{}, task("a", at("f", 1)), edge(long, "a", at("f", 2)))
	if want := `f:2: task "a": its parent "` + strings.Repeat("ä", 99) + `…" does not exist`; err == nil || err.Error() != want {
		t.Errorf("Build = %.500v, want %s", err, want)
	}
	warnings, err = build(&workflow.Workflow{Name: "w"}, workflow.Options{}, task(long, at("f", 1), "x"), reads("b", "x", at("f", 2)),
		task("c", at("f", 3), long), task("d", at("f", 4), long))
	if err != nil || len(warnings) != 2 || len(warnings[0].Message)+len(warnings[1].Message) > 2000 {
		t.Errorf("Build = %v, %d warnings of %.3000v", err, len(warnings), warnings)
	}
}

// TestBuilderBoundsWriters: a malicious workflow contains a hundred thousand tasks that write and read the same file.
func TestBuilderBoundsWriters(t *testing.T) {
	t.Parallel()
	var steps []step
	for i := range 100_000 {
		steps = append(steps, add(workflow.Task{ID: fmt.Sprint(i), Inputs: []string{"x"}, Outputs: []string{"x"}}, at("f", 1)))
	}
	wf := &workflow.Workflow{Name: "w"}
	if _, err := build(wf, workflow.Options{}, steps...); err != nil || wf.Graph.Edges() != 0 {
		t.Errorf("Build = %v, want no edges", err)
	}
}

// The message about a cycle has a bounded length.
func TestBuilderShowsTheBeginningOfACycle(t *testing.T) {
	t.Parallel()
	var steps []step
	for i := range 1000 {
		id, next := fmt.Sprint("t", i), fmt.Sprint("t", (i+1)%1000)
		steps = append(steps, task(id, at("f", 1)), edge(id, next, at("f", 1)))
	}
	_, err := build(&workflow.Workflow{Name: "w"}, workflow.Options{}, steps...)
	if err == nil || !strings.HasSuffix(err.Error(), "t98 -> t99 -> 900 more -> t0") {
		t.Errorf("Build = %v", err)
	}
}

// A task comes after every task that writes a file that it reads, and after its parents, regardless of the order in
// which a reader found the tasks and the edges.
func TestBuilderOrders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		tasks := make([]workflow.Task, n)
		var steps []step
		type pair struct{ parent, child int }
		var want []pair
		for i := range tasks {
			tasks[i] = workflow.Task{ID: fmt.Sprint("t", i), Outputs: []string{fmt.Sprint("f", i)}}
			for p := range i {
				switch rapid.IntRange(0, 5).Draw(t, "relation") {
				case 0:
					steps = append(steps, edge(fmt.Sprint("t", p), tasks[i].ID, at("f", 1)))
					want = append(want, pair{p, i})
				case 1:
					tasks[i].Inputs = append(tasks[i].Inputs, fmt.Sprint("f", p))
					want = append(want, pair{p, i})
				}
			}
			steps = append(steps, add(tasks[i], at("f", 1)))
		}
		wf := &workflow.Workflow{Name: "w"}
		if _, err := build(wf, workflow.Options{}, rapid.Permutation(steps).Draw(t, "steps")...); err != nil {
			t.Fatal(err)
		}
		index := func(i int) int {
			return slices.IndexFunc(wf.Tasks, func(t workflow.Task) bool { return t.ID == fmt.Sprint("t", i) })
		}
		place := make([]int, n) // of each task in an order that respects the graph
		for k, i := range wf.Graph.Order() {
			place[i] = k
		}
		for _, p := range want {
			if place[index(p.parent)] >= place[index(p.child)] {
				t.Errorf("t%d does not come before t%d", p.parent, p.child)
			}
		}
		for i := range wf.Tasks { // there are no unnecessary edges
			for _, c := range wf.Graph.Children(i) {
				asked := func(p pair) bool { return index(p.parent) == i && index(p.child) == c }
				if !slices.ContainsFunc(want, asked) {
					t.Errorf("the edge %s -> %s comes from nowhere", wf.Tasks[i].ID, wf.Tasks[c].ID)
				}
			}
		}
	})
}
