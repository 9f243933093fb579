package main

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// least is the minimum sleep of a task: a shorter process consists mostly of its start.
const least = 20 * time.Millisecond

// An asleep is a workflow whose tasks only sleep: in proportion to their measured runtimes, except for the shortest.
type asleep struct {
	wf    *workflow.Workflow
	times []time.Duration
}

// asleepFor makes the tasks sleep such that the sum is work, or the minimum if that is more.
func asleepFor(wf *workflow.Workflow, work time.Duration) asleep {
	a := asleep{wf: wf, times: make([]time.Duration, len(wf.Tasks))}
	low, high := 0.0, float64(work)
	for range 100 {
		middle := (low + high) / 2
		if a.scale(middle) > work {
			high = middle
		} else {
			low = middle
		}
	}
	a.scale(low)
	return a
}

// scale makes each task sleep for its runtime times by, and returns the sum.
func (a asleep) scale(by float64) (sum time.Duration) {
	for i := range a.times {
		took := float64(a.wf.Tasks[i].Runtime) * by
		a.times[i] = max(least, time.Duration(min(took, 1e13)).Round(time.Millisecond))
		sum += a.times[i]
	}
	return sum
}

// listSchedule returns the makespan of a list schedule on the given number of CPUs.
func (a asleep) listSchedule(cpus int) time.Duration {
	makespan, _ := dag.ListSchedule(a.wf.Graph, a.times, nil, cpus)
	return makespan
}

// document encodes the workflow for corrald.
func (a asleep) document() ([]byte, error) {
	out := &workflow.Workflow{Name: a.wf.Name}
	b := workflow.NewBuilder(out, workflow.Options{})
	for i := range a.wf.Tasks {
		t := &a.wf.Tasks[i]
		err := b.Add(workflow.Task{ID: t.ID, Name: t.Name, Estimate: a.times[i],
			Argv: []string{"sleep", strconv.FormatFloat(a.times[i].Seconds(), 'f', 3, 64)}}, workflow.Place{})
		if err != nil {
			return nil, err
		}
		for _, c := range a.wf.Graph.Children(i) {
			b.Edge(t.ID, a.wf.Tasks[c].ID, workflow.Place{})
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err := wfformat.Write(&text, out)
	return text.Bytes(), err
}

// spec returns the workflow for the simulator.
func (a asleep) spec(rule clustering.Rule) execution.Spec {
	s := execution.Spec{Graph: a.wf.Graph, Tasks: make([]execution.TaskSpec, len(a.times))}
	for i, d := range a.times {
		s.Tasks[i] = execution.TaskSpec{ID: a.wf.Tasks[i].ID, CPUs: 1, Estimate: d}
	}
	s.Clusters = clustering.Jobs(a.wf.Graph, a.tasks(), rule)
	return s
}

// tasks returns the tasks for a clustering.
func (a asleep) tasks() []clustering.Unit {
	return slices.Collect(func(yield func(clustering.Unit) bool) {
		for i, d := range a.times {
			t := clustering.Unit{Estimate: d, Label: a.wf.Tasks[i].Label()}
			if t.Needs.CPUs = 1; !yield(t) {
				return
			}
		}
	})
}
