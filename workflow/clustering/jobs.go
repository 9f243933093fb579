package clustering

import (
	"math/bits"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Unit holds the properties of a task that matter for clustering.
type Unit struct {
	Needs    corral.Resources
	Estimate time.Duration
	Label    string // empty: none
}

// Jobs returns the tasks of each job, parents before their children, or nil if each task is a job of its own. Every
// task is in exactly one job. The rule must not be Auto.
func Jobs(g *dag.Graph, tasks []Unit, by Rule) [][]int {
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

// alike returns the same value for the needs of tasks of one level that may share a job: tasks that need the same
// numbers of cpus and gpus, and similar memory and disk. Equality is not required for memory and disk, because measured
// needs are never exactly equal, and small needs are never scarce.
func alike(r corral.Resources) corral.Resources {
	r.MemoryMiB, r.DiskMiB = bits.Len(uint(r.MemoryMiB/littleMemoryMiB)), bits.Len(uint(r.DiskMiB/littleDiskMiB))
	return r
}

// Needs below these values are treated as equal; above them, a job holds less than twice the smallest need among its
// tasks.
const (
	littleMemoryMiB = 256
	littleDiskMiB   = 1024
)

// held returns the same value for the needs of tasks that may follow each other in a job as a chain: they need the same
// numbers of cpus and gpus, because a cpu or a gpu would be useful to other jobs while a task of this job does not use
// it. Memory and disk may differ.
func held(r corral.Resources) corral.Resources { return corral.Resources{CPUs: r.CPUs, GPUs: r.GPUs} }

// kinds returns a number for each task. Numbers are equal if same returns equal values for the tasks' needs: only tasks
// with equal numbers may share a job.
func kinds(tasks []Unit, same func(corral.Resources) corral.Resources) []int {
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

// labels returns a number for each task's label; for a task without a label the number is negative.
func labels(tasks []Unit) []int {
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
