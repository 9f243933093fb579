package reuse

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral/workflow"
)

// A task is a task of a test's workflow.
type task = workflow.Task

// An edge is a parent and its child.
type edge [2]string

// flowOf creates a workflow.
func flowOf(t *testing.T, tasks []task, edges ...edge) *workflow.Workflow {
	t.Helper()
	flow := &workflow.Workflow{Name: "w"}
	b := workflow.NewBuilder(flow, workflow.Options{})
	for _, one := range tasks {
		if err := b.Add(one, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range edges {
		b.Edge(e[0], e[1], workflow.Place{})
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	return flow
}

// chain returns a workflow: in → a → m → b → out, c after a without using a file of a, and d alone.
func chain() []task {
	return []task{
		{ID: "a", Inputs: []string{"in"}, Outputs: []string{"m"}, Argv: []string{"one"}},
		{ID: "b", Inputs: []string{"m"}, Outputs: []string{"out"}},
		{ID: "c", Inputs: []string{"other"}},
		{ID: "d"},
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	const before = "task a before it runs"
	order := []edge{{"a", "b"}, {"a", "c"}}
	for name, tc := range map[string]struct {
		now  func(tasks []task) []task // nil: the same workflow
		past func(p *Past)
		want []string
	}{
		"nothing":      {want: []string{"", "", "", ""}},
		"no past":      {past: func(p *Past) { *p = Past{} }, want: []string{"it is new", "it is new", "it is new", "it is new"}},
		"an input":     {past: func(p *Past) { p.Same = func(f string) bool { return f != "in" } }, want: []string{"its input in has changed", before, before, ""}},
		"a leaf":       {past: func(p *Past) { p.Same = func(f string) bool { return f != "other" } }, want: []string{"", "", "its input other has changed", ""}},
		"an output":    {past: func(p *Past) { p.Made = func(f string) bool { return f != "out" } }, want: []string{"", "its output out is gone", "", ""}},
		"it failed":    {past: func(p *Past) { p.Done = func(i int) bool { return i != 0 } }, want: []string{"it was not done", before, before, ""}},
		"the command":  {now: func(s []task) []task { s[0].Argv = []string{"two"}; return s }, want: []string{"its command has changed", before, before, ""}},
		"a stream":     {now: func(s []task) []task { s[3].Stdout = "x"; return s }, want: []string{"", "", "", "its command has changed"}},
		"its needs":    {now: func(s []task) []task { s[0].MemoryMiB, s[1].Estimate = 7, 9; return s }, want: []string{"", "", "", ""}},
		"a file more":  {now: func(s []task) []task { s[3].Outputs = []string{"n"}; return s }, want: []string{"", "", "", "its files have changed"}},
		"a new task":   {now: func(s []task) []task { return append(s, task{ID: "e"}) }, want: []string{"", "", "", "", "it is new"}},
		"a task fewer": {now: func(s []task) []task { return slices.Delete(s, 1, 2) }, want: []string{"", "", ""}},
		"a new parent": {now: func(s []task) []task { s[3].Inputs = nil; return append(s, task{ID: "e"}) }, want: []string{"", "", "", "task e before it runs", "it is new"}},
	} {
		yes := func(string) bool { return true }
		p := Past{Flow: flowOf(t, chain(), order...), Done: func(int) bool { return true }, Same: yes, Made: yes}
		if tc.past != nil {
			tc.past(&p)
		}
		tasks := chain()
		if tc.now != nil {
			tasks = tc.now(tasks)
		}
		edges := order
		if name == "a new parent" {
			edges = append(slices.Clone(order), edge{"e", "d"})
		}
		if len(tasks) < len(chain()) {
			edges = order[1:]
		}
		if got := Outdated(flowOf(t, tasks, edges...), p); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
