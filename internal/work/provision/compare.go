package provision

import (
	"slices"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// Alike reports whether a run provides information about a workflow's tasks: either the run or the workflow must
// contain all kinds of tasks that the other contains. That excludes runs whose tasks merely share a name, such as sort,
// with one of the workflow's.
func Alike(run *profile.Profile, w *workflow.Workflow) bool {
	kinds := map[string]bool{}
	for _, t := range profile.Tasks(w) {
		kinds[t.Transformation] = true
	}
	shared, measured := 0, run.Transformations()
	for _, kind := range measured {
		if kinds[kind] {
			shared++
		}
	}
	return shared > 0 && (shared == len(kinds) || shared == len(measured))
}

// Named reports whether a workflow names the kinds of all its tasks. The kind of a task whose name is its id is only
// the name of its program, which other workflows may use for something else.
func Named(w *workflow.Workflow) bool {
	return !slices.ContainsFunc(w.Tasks, func(t workflow.Task) bool { return t.Name == t.ID })
}
