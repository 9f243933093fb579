package workflow

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Summary is what can be said of a workflow in a few numbers. Times are of estimates; a task without
// one counts as 0.
type Summary struct {
	Name            string         `json:"name"`
	Tasks           int            `json:"tasks"`
	Edges           int            `json:"edges"`
	Levels          int            `json:"levels"`
	Width           int            `json:"width"`           // tasks of the largest level
	Transformations int            `json:"transformations"` // different task names
	Files           int            `json:"files"`           // read or written by tasks
	Inputs          int            `json:"inputs"`          // files that no task writes
	CriticalPath    corral.Seconds `json:"critical_path_s"`
	TotalWork       float64        `json:"total_work_s"`           // sum of the tasks' times
	CPUWork         float64        `json:"cpu_work_s"`             // the same, each times its cpus
	Unestimated     int            `json:"tasks_without_estimate"` // tasks that count as 0
}

// Summary computes the summary. It takes time in proportion to the tasks and edges.
func (w *Workflow) Summary() Summary {
	s := Summary{
		Name:         w.Name,
		Tasks:        w.Graph.Len(),
		Edges:        w.Graph.Edges(),
		Levels:       len(w.Graph.LevelSizes()),
		Width:        w.Graph.Width(),
		Inputs:       len(w.OwnInputs()),
		CriticalPath: corral.Seconds(w.Graph.CriticalPath(w.Estimates(0))),
	}
	names, files := make(map[string]bool), make(map[string]bool)
	var work, cpuWork float64 // milliseconds: sums of a large workflow do not fit a Duration
	for i := range w.Tasks {
		t := &w.Tasks[i]
		names[t.Name] = true
		for _, f := range slices.Concat(t.Inputs, t.Outputs) {
			files[f] = true
		}
		work += milliseconds(t.Estimate)
		cpuWork += milliseconds(t.Estimate) * float64(t.CPUs)
		if _, ok := t.Estimated(); !ok {
			s.Unestimated++
		}
	}
	s.Transformations, s.Files = len(names), len(files)
	s.TotalWork, s.CPUWork = inSeconds(work), inSeconds(cpuWork)
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func inSeconds(ms float64) float64 { return math.Round(ms) / 1000 }
