package reuse

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corral-pilot/corral/workflow"
)

// A Past holds the known facts about an earlier run of a workflow.
type Past struct {
	Flow *workflow.Workflow     // nil if there was no earlier run
	Done func(task int) bool    // by its index in Flow
	Same func(file string) bool // whether an input of the whole workflow is unchanged since
	Made func(file string) bool // whether a task's output still exists
}

// Outdated returns, for each task of a workflow, the reason why it has to run again, or "" if it does not. A task is up
// to date if it was done with the same command and files, none of its inputs has changed, its outputs still exist, and
// no task before it has to run again, since such a task might produce different results this time.
func Outdated(flow *workflow.Workflow, p Past) []string {
	index := make(map[string]int)
	if p.Flow != nil {
		for i := range p.Flow.Tasks {
			index[p.Flow.Tasks[i].ID] = i
		}
	}
	made := make(map[string]bool) // files produced by tasks of this workflow
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

// differs describes how a task differs from the task that was done. Requirements and the number of tries are ignored,
// because they do not affect a task's results.
func differs(t, old *workflow.Task) string {
	switch {
	case !slices.Equal(t.Argv, old.Argv), t.Streams != old.Streams:
		return "its command has changed"
	case !maps.Equal(t.Env, old.Env):
		return "its environment has changed"
	case !slices.Equal(t.Inputs, old.Inputs), !slices.Equal(t.Outputs, old.Outputs), !maps.Equal(t.Names, old.Names):
		return "its files have changed"
	}
	return ""
}

// Mark marks the tasks that need not run again as done, and returns them.
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
