package reuse

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corral-pilot/corral/workflow"
)

// A Past is what is known of an earlier run of a workflow.
type Past struct {
	Flow *workflow.Workflow     // nil: there was none
	Done func(task int) bool    // by its index there
	Same func(file string) bool // the workflow's own input is as it was then
	Made func(file string) bool // what a task made is still there
}

// Outdated says why each task of a workflow has to run again; "": it has not. A task is up to date if it was done with
// the same command and files, none of its inputs has changed, what it made is still there, and no task before it has to
// run again: those might make something else this time.
func Outdated(flow *workflow.Workflow, p Past) []string {
	index := make(map[string]int)
	if p.Flow != nil {
		for i := range p.Flow.Tasks {
			index[p.Flow.Tasks[i].ID] = i
		}
	}
	made := make(map[string]bool) // by tasks of this workflow
	for i := range flow.Tasks {
		for _, f := range flow.Tasks[i].Outputs {
			made[f] = true
		}
	}
	why := make([]string, len(flow.Tasks))
	for _, i := range flow.Graph.Order() {
		t := &flow.Tasks[i]
		old, known := index[t.ID]
		switch {
		case !known:
			why[i] = "it is new"
			continue
		case !p.Done(old):
			why[i] = "it was not done"
			continue
		}
		if why[i] = differs(t, &p.Flow.Tasks[old]); why[i] != "" {
			continue
		}
		for _, f := range t.Inputs {
			if !made[f] && !p.Same(f) && why[i] == "" {
				why[i] = fmt.Sprintf("its input %s has changed", f)
			}
		}
		for _, f := range t.Outputs {
			if !p.Made(f) && why[i] == "" {
				why[i] = fmt.Sprintf("its output %s is gone", f)
			}
		}
		for _, parent := range flow.Graph.Parents(i) {
			if why[parent] != "" && why[i] == "" {
				why[i] = fmt.Sprintf("task %s before it runs", flow.Tasks[parent].ID)
			}
		}
	}
	return why
}

// differs says in what a task is not the one that was done. What it needs and how often it is tried makes no difference
// to what it makes.
func differs(t, old *workflow.Task) string {
	switch {
	case !slices.Equal(t.Argv, old.Argv), t.Streams != old.Streams:
		return "its command has changed"
	case !maps.Equal(t.Env, old.Env):
		return "its environment has changed"
	case !slices.Equal(t.Inputs, old.Inputs), !slices.Equal(t.Outputs, old.Outputs), !maps.Equal(t.Names, old.Names):
		return "its files are others"
	}
	return ""
}

// Mark marks the tasks that need not run again as done, and says which they are.
func Mark(flow *workflow.Workflow, why []string) (done []int) {
	for i, reason := range why {
		if reason != "" {
			continue
		}
		control := workflow.Control{}
		if t := &flow.Tasks[i]; t.Control != nil {
			control = *t.Control
		}
		control.Done = true
		flow.Tasks[i].Control = &control
		done = append(done, i)
	}
	return done
}
