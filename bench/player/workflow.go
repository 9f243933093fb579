package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A task is one task of the workflow with the demand that a plan counts on.
type task struct {
	id       string
	needs    resources
	estimate seconds // on hosts of speed 1, in whole milliseconds
	bytes    float64 // of its input and output files
	parents  []int
	children []int
	rank     seconds // length of the longest path from its start to the end of the workflow
	position int     // in a topological order
}

// A document is the part of a WfFormat 1.5 file that the player reads.
type document struct {
	Version  string `json:"schemaVersion"`
	Workflow struct {
		Specification struct {
			Tasks []specified
			Files []struct {
				ID   string
				Size float64 `json:"sizeInBytes"`
			}
		}
		Execution struct{ Tasks []executed }
	}
}

// A specified is a task in the workflow's specification.
type specified struct {
	ID       string
	Parents  []string
	Children []string
	Inputs   []string `json:"inputFiles"`
	Outputs  []string `json:"outputFiles"`
	Corral   struct {
		ID        string
		MemoryMiB *int `json:"memory_mib"`
		GPUs      int
		Estimate  *seconds `json:"estimate_s"`
	} `json:"x-corral"`
}

// An executed is a task in the execution part, which has the measurements.
type executed struct {
	ID      string
	Runtime seconds `json:"runtimeInSeconds"`
	Cores   float64 `json:"coreCount"`
	Memory  float64 `json:"memoryInBytes"`
}

// readWorkflow reads the tasks of a WfFormat document. The extension x-corral takes precedence over measurements.
func readWorkflow(text []byte) ([]task, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d.Version != "1.5" {
		return nil, fmt.Errorf("schemaVersion is %q; only WfFormat 1.5 is read", d.Version)
	}
	measured := map[string]executed{}
	for _, e := range d.Workflow.Execution.Tasks {
		measured[e.ID] = e
	}
	size := map[string]float64{}
	for _, f := range d.Workflow.Specification.Files {
		size[f.ID] = f.Size
	}
	spec := d.Workflow.Specification.Tasks
	tasks, index := make([]task, len(spec)), make(map[string]int, len(spec))
	for i, s := range spec {
		if _, twice := index[s.ID]; twice {
			return nil, fmt.Errorf("task %q is given twice", s.ID)
		}
		index[s.ID] = i
		tasks[i] = s.task(measured[s.ID])
		for _, f := range slices.Concat(s.Inputs, s.Outputs) {
			tasks[i].bytes += size[f]
		}
		if t := &tasks[i]; t.estimate < 0 || t.needs.CPUs < 1 || t.needs.MemoryMiB < 0 || t.needs.GPUs < 0 {
			return nil, fmt.Errorf("task %q needs %s for %s", t.id, t.needs, t.estimate)
		}
	}
	if err := connect(tasks, spec, index); err != nil {
		return nil, err
	}
	return tasks, arrange(tasks)
}

// task combines the specification of a task with its measurements.
func (s specified) task(m executed) task {
	t := task{id: cmp.Or(s.Corral.ID, s.ID), estimate: m.Runtime}
	t.needs = resources{CPUs: max(1, int(math.Ceil(m.Cores))), GPUs: s.Corral.GPUs}
	t.needs.MemoryMiB = int(math.Ceil(m.Memory / (1 << 20)))
	if s.Corral.MemoryMiB != nil {
		t.needs.MemoryMiB = *s.Corral.MemoryMiB
	}
	if s.Corral.Estimate != nil {
		t.estimate = *s.Corral.Estimate
	}
	t.estimate = t.estimate.milliseconds()
	return t
}

// connect adds the edges. A document may name an edge at the parent, at the child, or at both.
func connect(tasks []task, spec []specified, index map[string]int) error {
	edge := func(parent, child string) error {
		p, ok := index[parent]
		c, ok2 := index[child]
		if !ok || !ok2 {
			return fmt.Errorf("task %q or %q of an edge does not exist", parent, child)
		}
		tasks[p].children = append(tasks[p].children, c)
		return nil
	}
	for _, s := range spec {
		for _, p := range s.Parents {
			if err := edge(p, s.ID); err != nil {
				return err
			}
		}
		for _, c := range s.Children {
			if err := edge(s.ID, c); err != nil {
				return err
			}
		}
	}
	for i := range tasks {
		slices.Sort(tasks[i].children)
		tasks[i].children = slices.Compact(tasks[i].children)
		for _, c := range tasks[i].children {
			tasks[c].parents = append(tasks[c].parents, i)
		}
	}
	return nil
}

// arrange finds a topological order (Kahn 1962) and, backwards through it, the upward ranks.
func arrange(tasks []task) error {
	missing := make([]int, len(tasks)) // :: task → parents that are not in the order yet
	order := make([]int, 0, len(tasks))
	for i, t := range tasks {
		if missing[i] = len(t.parents); missing[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		tasks[order[at]].position = at
		for _, c := range tasks[order[at]].children {
			if missing[c]--; missing[c] == 0 {
				order = append(order, c)
			}
		}
	}
	if len(order) < len(tasks) {
		return errors.New("the tasks depend on each other in a cycle")
	}
	for _, i := range slices.Backward(order) {
		t := &tasks[i]
		t.rank = t.estimate
		for _, c := range t.children {
			t.rank = max(t.rank, t.estimate+tasks[c].rank)
		}
	}
	return nil
}

// planned returns the estimates that the schedule shows: the computing time of a placement, times the speed of its
// hosts.
func (p *plan) planned(speed func(pilot int) float64) map[string]seconds {
	all := map[string]seconds{}
	for _, at := range p.Schedule {
		all[at.Task] = (at.End - at.Start - at.Transfer).times(speed(at.Pilot))
	}
	return all
}

// compare returns the number of tasks whose estimates differ between workflow and schedule by more than two
// milliseconds, which rounding explains. If adopt is set, tasks take over the schedule's estimates.
func compare(tasks []task, planned map[string]seconds, adopt bool) (differ int, err error) {
	for i := range tasks {
		t := &tasks[i]
		// A task that the schedule lacks has other estimates, too: the plan is for another workflow.
		estimate, ok := planned[t.id]
		if d := estimate - t.estimate; !ok || max(d, -d) > 2*second/1000 {
			differ++
		}
		if adopt && !ok {
			return 0, fmt.Errorf("the plan's schedule does not contain task %q", t.id)
		}
		if adopt {
			t.estimate = estimate
		}
	}
	if adopt { // ranks follow from estimates
		err = arrange(tasks)
	}
	return differ, err
}
