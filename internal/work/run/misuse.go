package run

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/profile"
)

const (
	// overCPUs is the factor from which a task is reported to use more cpus than it requested: the clock's precision
	// explains small excesses.
	overCPUs = 1.25
	// overLeast is the minimum runtime of a reported task: the processor time of shorter ones is too imprecise.
	overLeast = time.Second
	// mostChanged is the maximum number of changed inputs in a report.
	mostChanged = 20
)

// report returns the execution's report with the changed inputs, the excessive cpu use and the learned memory of tasks,
// or nil if no task ran.
func (s *state) report(createdAt time.Time) *corral.RunReport {
	r := s.x.Report(createdAt)
	if r == nil {
		return nil
	}
	over := map[string]corral.OverCPUs{} // :: transformation
	for i := range s.plan.flow.Tasks {
		task, t := &s.plan.flow.Tasks[i], s.x.Task(i)
		for _, file := range t.Changed {
			if len(r.ChangedInputs) < mostChanged {
				r.ChangedInputs = append(r.ChangedInputs, corral.ChangedInput{Task: task.ID, File: file})
			}
		}
		ran := t.EndedAt.Sub(t.StartedAt)
		if t.StartedAt.IsZero() || ran < overLeast {
			continue
		}
		if factor := t.CPUTime.Seconds() / ran.Seconds() / float64(max(1, task.CPUs)); factor >= overCPUs {
			o := over[task.Name]
			if o.Transformation, o.Tasks = task.Name, o.Tasks+1; factor > o.Factor {
				o.Factor, o.Task = factor, task.ID
			}
			over[task.Name] = o
		}
	}
	r.OverCPUs = slices.SortedFunc(maps.Values(over), func(a, b corral.OverCPUs) int {
		return cmp.Or(cmp.Compare(b.Factor, a.Factor), cmp.Compare(a.Transformation, b.Transformation))
	})
	r.LearnedMemory = s.learnedMemory()
	return r
}

// learnedMemory returns the memory with which tasks of each transformation begin because some were killed for their
// memory, by transformation.
func (s *state) learnedMemory() (all []corral.LearnedMemory) {
	sizes := execution.Learned(s.x)
	if len(sizes) == 0 {
		return nil
	}
	tasks := profile.Tasks(s.plan.flow)
	for i, kind := range profile.Kinds(tasks) {
		if mib := sizes[kind]; mib > 0 {
			all = append(all, corral.LearnedMemory{Transformation: tasks[i].Transformation, MemoryMiB: mib})
			delete(sizes, kind)
		}
	}
	slices.SortFunc(all, func(a, b corral.LearnedMemory) int { return cmp.Compare(a.Transformation, b.Transformation) })
	return all
}
