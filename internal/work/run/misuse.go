package run

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

const (
	// overCPUs is from when on a task is said to use more cpus than it asked for: a little more is the clock's doing.
	overCPUs = 1.25
	// overLeast is how long it must have run for that: of shorter ones processor time is told too roughly.
	overLeast = time.Second
	// mostChanged bounds the changed inputs in a report.
	mostChanged = 20
)

// report is the execution's, nil if no task ran, and what is to be said of tasks by name.
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
	return r
}
