package clustering

import (
	"math/bits"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Task is what a clustering knows of a task.
type Task struct {
	Needs    corral.Resources
	Estimate time.Duration
	Label    string // empty: none
}

// Jobs returns the tasks of each job, parents before their children, or nil if each task is a job of its own. Every
// task is in exactly one. Auto must have been decided before.
func Jobs(g *dag.Graph, tasks []Task, by Rule) [][]int {
	switch by.Kind {
	case Horizontal:
		return dag.ByLevel(g, by.Groups, kinds(tasks, alike))
	case ByRuntime:
		estimates := make([]time.Duration, len(tasks))
		for i := range tasks {
			estimates[i] = tasks[i].Estimate
		}
		return dag.ByRuntime(g, estimates, time.Duration(by.Target), kinds(tasks, alike))
	case Vertical:
		return dag.Chains(g, kinds(tasks, held))
	case ByLabel:
		return dag.ByLabel(g, labels(tasks))
	}
	return nil
}

// alike is the same for tasks that may stand beside each other in a job: they need as many cpus and gpus, and about
// as much memory and disk. Measured needs are never quite the same, and what is little is never scarce.
func alike(r corral.Resources) corral.Resources {
	r.MemoryMiB, r.DiskMiB = bits.Len(uint(r.MemoryMiB/littleMemoryMiB)), bits.Len(uint(r.DiskMiB/littleDiskMiB))
	return r
}

// What is less makes no difference; above it a job holds less than twice what its least task needs.
const (
	littleMemoryMiB = 256
	littleDiskMiB   = 1024
)

// held is the same for tasks that may follow each other in a job because they would anyway: a cpu or a gpu is of use to
// others while a task of the job does without it. Memory and disk may differ.
func held(r corral.Resources) corral.Resources { return corral.Resources{CPUs: r.CPUs, GPUs: r.GPUs} }

// kinds numbers what is the same of different tasks' needs: only tasks of one kind may share a job.
func kinds(tasks []Task, same func(corral.Resources) corral.Resources) []int {
	kinds := make([]int, len(tasks))
	number := make(map[corral.Resources]int)
	for i := range tasks {
		n := same(tasks[i].Needs)
		if _, known := number[n]; !known {
			number[n] = len(number)
		}
		kinds[i] = number[n]
	}
	return kinds
}

// labels numbers the labels; a task without one has a negative number.
func labels(tasks []Task) []int {
	labels := make([]int, len(tasks))
	number := make(map[string]int)
	for i := range tasks {
		l := tasks[i].Label
		if l == "" {
			labels[i] = -1
			continue
		}
		if _, known := number[l]; !known {
			number[l] = len(number)
		}
		labels[i] = number[l]
	}
	return labels
}
