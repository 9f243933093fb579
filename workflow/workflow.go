package workflow

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Workflow is a graph of tasks. It is completed by a Builder, and not modified afterwards.
type Workflow struct {
	Name        string
	Description string
	Tasks       []Task
	Graph       *dag.Graph       // node i is Tasks[i]
	FileSizes   map[string]int64 // :: file id → bytes; files of unknown size are omitted
	Dir         string           // directory of the workflow's own inputs; "" if the workflow was not read from a file
	CreatedAt   time.Time        // creation time of the file; zero: unknown
	Author      *Author
	System      *RuntimeSystem // the system that created or executed the workflow

	// These are the known facts about an execution of the workflow.
	Makespan   time.Duration // 0: not yet run
	ExecutedAt time.Time     // its start; zero: unknown
	Machines   []Machine

	// Data that complements the tasks' Controls.
	Categories   map[string]int // :: category → how many of its tasks may run at a time; missing: unlimited
	Subworkflows []Subworkflow  // an inner subworkflow follows the enclosing one

	origin
}

// An origin holds additional information that a Builder records about a workflow; it is empty if no Builder was used.
type origin struct {
	places  []Place   // place of each task
	against *misorder // the first file that is read before it is written; nil: none
}

// A Task is a vertex of a workflow: a process to run.
type Task struct {
	ID   string // unique in its workflow
	Name string // its transformation

	// The process, and the files that it reads and writes.
	Argv    []string // empty: unknown, as in some traces
	Env     map[string]string
	Inputs  []string // file ids without duplicates
	Outputs []string
	Names   map[string]string // :: file id → its path in the task's directory, if it differs from the id
	Streams

	// The needs of the task, and how a run treats it.
	corral.Resources               // at least 1 cpu; 0 memory or disk means unknown
	Estimate         time.Duration // estimated runtime; see Estimated about 0
	Instant          bool          // an Estimate of 0 is valid: a trace reports that the task took no time
	Retries          *int          // nil: the run's default
	Timeout          time.Duration // 0: none
	Control          *Control      // nil: no special treatment

	Execution // measurements of a past run
}

// Streams holds the names of the files for a process's standard streams, in the task's directory.
type Streams struct {
	Stdin  string // "": none
	Stdout string // "": stored with the attempt
	Stderr string
}

// An Execution holds the measurements of a task. The zero value means that nothing was measured.
type Execution struct {
	Runtime      time.Duration // 0: unknown, unless another field is set
	StartedAt    time.Time
	CPUTime      time.Duration // user and system time of all the task's processes; set only with a Runtime
	MemoryBytes  int64         // maximum resident set
	ReadBytes    int64
	WrittenBytes int64
	Worker       string // name of the machine on which the task ran
}

// Measured reports whether x contains any measurements. If it does, a runtime of 0 means that the task was too fast for
// the clock.
func (x *Execution) Measured() bool { return *x != (Execution{}) }

// Estimated returns the estimate of the task's runtime; ok is false if the task has none. An estimate of 0 is valid
// only if a runtime of 0 was measured or reported by a trace, because in files and programs 0 also stands for an
// unknown value.
func (t *Task) Estimated() (estimate time.Duration, ok bool) {
	return t.Estimate, t.Estimate != 0 || t.Instant || t.Runtime == 0 && t.Measured()
}

// A Machine is a node that ran tasks. Unknown values are zero. Machine and the types below contain information for
// users; Corral makes no decisions based on them, and passes them on under their WfFormat names.
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

// An Author is the author of a workflow.
type Author struct {
	Name        string `json:"name"`
	Email       string `json:"email"`
	Institution string `json:"institution,omitempty"`
	Country     string `json:"country,omitempty"`
}

// A RuntimeSystem is the workflow system from which a workflow originates.
type RuntimeSystem struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
}

// Label returns the task's label, or "" if it has none; tasks with the same label share a job if a run clusters by
// label.
func (t *Task) Label() string {
	if t.Control == nil {
		return ""
	}
	return t.Control.Label
}

// Place returns the place of task i in the file from which it was read or, if it was not read from a file, a Place that
// names the workflow.
func (w *Workflow) Place(i int) Place {
	if i < len(w.places) && w.places[i] != (Place{}) {
		return w.places[i]
	}
	return Place{File: "workflow " + w.Name}
}

// DoneBefore reports for each task whether it was done before: either the task itself or a subworkflow to which it
// belongs is marked as done.
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

// mostBytes is larger than the number of bytes that any task reads and writes, but small enough that the sum over all
// tasks does not overflow.
const mostBytes = 1 << 42

// Bytes returns the total known size of the files that task i reads and writes, limited to 4 TiB.
func (w *Workflow) Bytes(i int) (sum int64) {
	for _, file := range slices.Concat(w.Tasks[i].Inputs, w.Tasks[i].Outputs) {
		sum = min(AddBytes(sum, w.FileSizes[file]), mostBytes)
	}
	return sum
}

// OwnInputs returns the ids, sorted, of the files that some task reads and no task writes. It also returns a file whose
// only writer also reads it, because the first version of such a file comes from elsewhere.
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

// Needed returns the ids, sorted, of the files that must exist before a run. Tasks that were done before are ignored;
// of the other tasks, at least one reads such a file, and any that writes it also reads it. Unless some tasks were done
// before, these files are the workflow's own inputs.
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

// Estimates returns the estimated runtime of each task, for the functions of package dag. For tasks without an estimate
// it returns otherwise.
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

// WithExecutions returns a copy of w with the measurements of a finished run: executions[i] replaces the measurements
// of task i, and is zero if it did not run. The copy's machines are the machines that the executions name. Estimates
// are unchanged. w is not modified; the two workflows share unchanged data.
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
