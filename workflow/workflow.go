package workflow

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Workflow is a graph of tasks. A Builder completes it; nothing changes it afterwards.
type Workflow struct {
	Name        string
	Description string
	Tasks       []Task
	Graph       *dag.Graph       // node i is Tasks[i]
	FileSizes   map[string]int64 // :: file id → bytes; files of unknown size are missing
	Dir         string           // where its own inputs are; "" if it was not read from a file
	CreatedAt   time.Time        // of the file; zero: unknown
	Author      *Author
	System      *RuntimeSystem // that it was made or executed with

	// What is known of an execution of it.
	Makespan   time.Duration // 0: not yet run
	ExecutedAt time.Time     // its beginning; zero: unknown
	Machines   []Machine

	// What its tasks' Controls leave to say.
	Categories   map[string]int // :: category → how many of its members may run at a time; missing: any number
	Subworkflows []Subworkflow  // an inner one follows the one that it is in

	origin
}

// An origin is what a Builder knows of a workflow besides; of one that was made without it, nothing.
type origin struct {
	places  []Place   // of the tasks
	against *misorder // the first file that is read before it is written; nil: there is none
}

// A Task is one vertex of a workflow: a process to run.
type Task struct {
	ID   string // unique in its workflow
	Name string // of its transformation

	// The process, and the files that it reads and writes.
	Argv    []string // empty: not known, as in some traces
	Env     map[string]string
	Inputs  []string // file ids, each once
	Outputs []string
	Names   map[string]string // :: file id → its path in the task's directory, where that is not the id
	Streams

	// What it needs, and how a run treats it.
	corral.Resources               // at least 1 cpu; memory and disk that are 0 are not known
	Estimate         time.Duration // of its runtime; see Estimated for 0
	Instant          bool          // an Estimate of 0 is one: a trace says that the task took no time
	Retries          *int          // nil: as the run says
	Timeout          time.Duration // 0: none
	Control          *Control      // nil: nothing beyond that

	Execution // what was measured when it ran
}

// Streams are the files of a process's standard streams, in the task's directory.
type Streams struct {
	Stdin  string // "": none
	Stdout string // "": kept with the attempt
	Stderr string
}

// An Execution is what was measured of a task. Its zero value says that nothing is known.
type Execution struct {
	Runtime      time.Duration // 0: unknown, unless something else is known
	StartedAt    time.Time
	CPUTime      time.Duration // user and system, of all its processes; kept only with a Runtime
	MemoryBytes  int64         // largest resident set
	ReadBytes    int64
	WrittenBytes int64
	Worker       string // the machine it ran on
}

// Measured reports whether anything is known of the execution. A runtime of 0 is then that of a task which was too fast
// for the clock.
func (x *Execution) Measured() bool { return *x != (Execution{}) }

// Estimated returns the estimate of the task's runtime; ok is false if there is none. An estimate of 0 is one only
// where 0 was measured, or a trace says so: in files and in programs it stands for a value that is not known, too.
func (t *Task) Estimated() (estimate time.Duration, ok bool) {
	return t.Estimate, t.Estimate != 0 || t.Instant || t.Runtime == 0 && t.Measured()
}

// A Machine is a node that ran tasks. Unknown values are zero. It and the types below describe a workflow to people;
// Corral decides nothing by them, and passes them on under the names that WfFormat gives them.
type Machine struct {
	Name        string `json:"nodeName"`
	System      string `json:"system,omitempty"` // linux, macos or windows
	Arch        string `json:"architecture,omitempty"`
	Release     string `json:"release,omitempty"`
	MemoryBytes int64  `json:"memoryInBytes,omitempty"`
	CPU         CPU    `json:"cpu,omitzero"`
}

// A CPU describes the processors of a machine.
type CPU struct {
	Cores    int    `json:"coreCount,omitempty"`
	SpeedMHz int    `json:"speedInMHz,omitempty"`
	Vendor   string `json:"vendor,omitempty"`
}

// An Author is who made a workflow.
type Author struct {
	Name        string `json:"name"`
	Email       string `json:"email"`
	Institution string `json:"institution,omitempty"`
	Country     string `json:"country,omitempty"`
}

// A RuntimeSystem is the workflow system that a workflow comes from.
type RuntimeSystem struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
}

// Label is that of the task; tasks of the same share a job if a run is asked to cluster by label. "": none.
func (t *Task) Label() string {
	if t.Control == nil {
		return ""
	}
	return t.Control.Label
}

// Place says where task i stands: in a file if it was read from one, otherwise in the workflow that a program made.
func (w *Workflow) Place(i int) Place {
	if i < len(w.places) && w.places[i] != (Place{}) {
		return w.places[i]
	}
	return Place{File: "workflow " + w.Name}
}

// DoneBefore says of each task whether it was done before: it is marked, or belongs to a subworkflow that is.
func (w *Workflow) DoneBefore() []bool {
	done := make([]bool, len(w.Tasks))
	for i := range w.Tasks {
		done[i] = w.Tasks[i].Control != nil && w.Tasks[i].Control.Done
	}
	for _, s := range w.Subworkflows {
		for i := s.First; i < s.End && s.Control != nil && s.Control.Done; i++ {
			done[i] = true
		}
	}
	return done
}

// MostBytes is more than any task reads and writes, and so little that those of all tasks can be added up.
const MostBytes = 1 << 42

// Bytes returns the size of what task i reads and writes, as far as it is known; at most MostBytes.
func (w *Workflow) Bytes(i int) (sum int64) {
	for _, file := range slices.Concat(w.Tasks[i].Inputs, w.Tasks[i].Outputs) {
		sum = min(AddBytes(sum, w.FileSizes[file]), MostBytes)
	}
	return sum
}

// OwnInputs returns the ids of the files that tasks read and none writes, sorted. A file of which its only writer reads
// the version before is among them: the first version comes from elsewhere.
func (w *Workflow) OwnInputs() []string {
	own := make(map[string]bool)
	for i := range w.Tasks {
		for _, f := range w.Tasks[i].Inputs {
			own[f] = true
		}
	}
	for i := range w.Tasks {
		for _, f := range w.Tasks[i].Outputs {
			if !slices.Contains(w.Tasks[i].Inputs, f) {
				delete(own, f)
			}
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// Needed returns the ids of the files that must be there before a run: those that tasks read which are to run, and none
// of those tasks writes, unless it reads the version before. They are the own inputs of the workflow, unless some tasks
// were done before. Sorted.
func (w *Workflow) Needed() []string {
	done := w.DoneBefore()
	needed := make(map[string]bool)
	for i := range w.Tasks {
		for _, f := range w.Tasks[i].Inputs {
			if !done[i] {
				needed[f] = true
			}
		}
	}
	for i := range w.Tasks {
		for _, f := range w.Tasks[i].Outputs {
			if !done[i] && !slices.Contains(w.Tasks[i].Inputs, f) {
				delete(needed, f)
			}
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

// Estimates returns the estimated runtime of each task, as the functions of package dag take it. A task
// without an estimate is assumed to take otherwise.
func (w *Workflow) Estimates(otherwise time.Duration) []time.Duration {
	all := make([]time.Duration, len(w.Tasks))
	for i := range w.Tasks {
		estimate, ok := w.Tasks[i].Estimated()
		if !ok {
			estimate = otherwise
		}
		all[i] = estimate
	}
	return all
}

// WithExecutions returns a copy of w that tells of a finished run of it: executions[i] replaces what
// was known of task i, and is zero if it did not run. The machines become those that the executions
// name. Estimates stay as they were. w is not changed; the copies share what neither changes.
func (w *Workflow) WithExecutions(startedAt time.Time, makespan time.Duration, executions []Execution) *Workflow {
	run := *w
	run.ExecutedAt, run.Makespan = startedAt, makespan
	run.Tasks = slices.Clone(w.Tasks)
	names := make(map[string]bool)
	for i := range run.Tasks {
		run.Tasks[i].Execution = executions[i]
		if worker := executions[i].Worker; worker != "" {
			names[worker] = true
		}
	}
	run.Machines = nil
	for _, name := range slices.Sorted(maps.Keys(names)) {
		run.Machines = append(run.Machines, Machine{Name: name})
	}
	return &run
}
