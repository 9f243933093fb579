package workflow

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Summary holds the key figures of a workflow. Times are based on estimates; a task without an estimate counts as 0.
type Summary struct {
	Name            string         `json:"name"`
	Tasks           int            `json:"tasks"`
	Edges           int            `json:"edges"`
	Levels          int            `json:"levels"`
	Width           int            `json:"width"`           // number of tasks in the largest level
	Transformations int            `json:"transformations"` // number of distinct task names
	Files           int            `json:"files"`           // number of files that tasks read or write
	Inputs          int            `json:"inputs"`          // number of files that no task writes
	Bytes           int64          `json:"bytes"`           // total size of the files with known sizes
	InputBytes      int64          `json:"input_bytes"`     // the part of bytes in files that no task writes
	Unsized         int            `json:"files_without_size"`
	CriticalPath    corral.Seconds `json:"critical_path_s"`
	TotalWork       float64        `json:"total_work_s"`           // sum of the tasks' times
	CPUWork         float64        `json:"cpu_work_s"`             // sum of the tasks' times, weighted by their cpus
	Unestimated     int            `json:"tasks_without_estimate"` // number of tasks that count as 0
}

// Summary computes the summary in time proportional to the tasks and edges.
func (w *Workflow) Summary() Summary {
	s := Summary{
		Name:         w.Name,
		Tasks:        w.Graph.Len(),
		Edges:        w.Graph.Edges(),
		Levels:       len(w.Graph.LevelSizes()),
		Width:        w.Graph.Width(),
		CriticalPath: corral.Seconds(w.Graph.CriticalPath(w.Estimates(0))),
	}
	names, files := make(map[string]bool), make(map[string]bool)
	var work, cpuWork float64 // in milliseconds: sums of a large workflow may exceed a Duration
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
	own := w.OwnInputs()
	s.Inputs = len(own)
	for _, f := range own {
		s.InputBytes = AddBytes(s.InputBytes, w.FileSizes[f])
	}
	for f := range files {
		bytes, known := w.FileSizes[f]
		if s.Bytes = AddBytes(s.Bytes, bytes); !known {
			s.Unsized++
		}
	}
	s.TotalWork, s.CPUWork = inSeconds(work), inSeconds(cpuWork)
	return s
}

// AddBytes returns the sum of two sizes, limited to the maximum int64.
func AddBytes(a, b int64) int64 { return min(a, math.MaxInt64-b) + b }

// A Transformation holds the key figures of the tasks with one name. Times are based on the tasks that have an
// estimate.
type Transformation struct {
	Name         string         `json:"name"`
	Tasks        int            `json:"tasks"`
	FirstLevel   int            `json:"first_level"` // from 0
	LastLevel    int            `json:"last_level"`
	Estimated    int            `json:"estimated"` // number of tasks with an estimate
	Mean         corral.Seconds `json:"mean_s"`
	Least        corral.Seconds `json:"least_s"`
	Most         corral.Seconds `json:"most_s"`
	Total        float64        `json:"total_s"`
	Share        float64        `json:"share"`           // share of the work of all tasks
	MostCPUs     int            `json:"most_cpus"`       // maximum per task
	MostMemory   int            `json:"most_memory_mib"` // maximum per task; 0: not known
	ReadBytes    int64          `json:"read_bytes"`      // measured total over its tasks
	WrittenBytes int64          `json:"written_bytes"`
}

// Transformations returns the key figures for each task name, in descending order of total work.
func (w *Workflow) Transformations() []Transformation {
	var all []Transformation
	numbers := make(map[string]int) // :: name → index in all
	levels := w.Graph.Levels()
	var work float64 // in milliseconds
	for i := range w.Tasks {
		t := &w.Tasks[i]
		k, known := numbers[t.Name]
		if !known {
			k = len(all)
			numbers[t.Name] = k
			all = append(all, Transformation{Name: t.Name, FirstLevel: levels[i]})
		}
		all[k].add(t, levels[i])
		work += milliseconds(t.Estimate)
	}
	for k := range all {
		x := &all[k]
		if x.Estimated > 0 {
			x.Mean = corral.Seconds(x.Total / float64(x.Estimated) * float64(time.Millisecond))
		}
		if work > 0 {
			x.Share = math.Round(x.Total/work*1e6) / 1e6
		}
		x.Total = inSeconds(x.Total)
	}
	slices.SortStableFunc(all, func(x, y Transformation) int {
		return cmp.Or(cmp.Compare(y.Total, x.Total), cmp.Compare(y.Tasks, x.Tasks), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// add includes a task in the figures; Total is in milliseconds until all tasks have been added.
func (x *Transformation) add(t *Task, level int) {
	x.Tasks++
	x.FirstLevel, x.LastLevel = min(x.FirstLevel, level), max(x.LastLevel, level)
	x.MostCPUs, x.MostMemory = max(x.MostCPUs, t.CPUs), max(x.MostMemory, t.MemoryMiB)
	x.ReadBytes, x.WrittenBytes = AddBytes(x.ReadBytes, t.ReadBytes), AddBytes(x.WrittenBytes, t.WrittenBytes)
	estimate, ok := t.Estimated()
	if !ok {
		return
	}
	if x.Estimated == 0 {
		x.Least = corral.Seconds(estimate)
	}
	x.Estimated++
	x.Least, x.Most = min(x.Least, corral.Seconds(estimate)), max(x.Most, corral.Seconds(estimate))
	x.Total += milliseconds(estimate)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func inSeconds(ms float64) float64 { return math.Round(ms) / 1000 }
