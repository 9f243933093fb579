package corral

import (
	"fmt"
	"time"
)

// RunID identifies a run.
type RunID int64

// A RunState says what a run is doing.
type RunState string

const (
	RunRunning    RunState = "RUNNING"    // ready tasks are handed to the cluster
	RunCancelling RunState = "CANCELLING" // running tasks are being killed
	RunSucceeded  RunState = "SUCCEEDED"  // every task succeeded
	RunFailed     RunState = "FAILED"     // a task failed for good; what did not depend on it was finished
	RunStalled    RunState = "STALLED"    // no present or requested worker could take what was ready
	RunCancelled  RunState = "CANCELLED"  // cancelled; may be resumed
	RunDeleted    RunState = "DELETED"    // tombstone
)

// RunStates lists all states in their order of life.
var RunStates = []RunState{RunRunning, RunCancelling, RunSucceeded, RunFailed, RunStalled, RunCancelled, RunDeleted}

// A RunMove names an event of a run's life.
type RunMove string

const (
	RunSucceed   RunMove = "succeed"
	RunFail      RunMove = "fail"
	RunStall     RunMove = "stall"
	RunCancel    RunMove = "cancel"
	RunCancelEnd RunMove = "cancelled"
	RunResume    RunMove = "resume"
	RunRemove    RunMove = "remove"
)

// RunOptions are chosen when a run is created and never change.
type RunOptions struct {
	Clustering     string  `json:"clustering"`             // a clustering.Rule, but for auto, which was decided before
	Retries        int     `json:"retries"`                // of each task, unless the task says otherwise
	RetryUnless    string  `json:"retry_unless,omitempty"` // exit statuses that no retry follows, as in 3,64
	CrashLimit     int     `json:"crash_limit,omitempty"`  // lost workers that make a task fail; -1: none do
	Stall          Seconds `json:"stall_s"`                // how long a task may be ready that nothing can take
	DefaultRuntime Seconds `json:"default_runtime_s"`      // assumed of a task without an estimate
	KeepTasks      bool    `json:"keep_tasks,omitempty"`   // also the directory of an attempt that left only outputs
	Inputs         string  `json:"inputs,omitempty"`       // how tasks get theirs: LinkInputs, CopyInputs
	Priority       int     `json:"priority,omitempty"`     // added to those of its tasks; the largest start first
	Trace          string  `json:"trace,omitempty"`        // how tasks are traced: TraceProcesses, TraceIO; empty: not
	Stream         bool    `json:"stream,omitempty"`       // tasks go to worker jobs, on a cluster of kind Condor
	Open           bool    `json:"open,omitempty"`         // it has no workflow: tasks are added while it goes on
}

// How tasks get their inputs. A file that is also an output of the task is always copied.
const (
	LinkInputs = "link" // links to the run's files, which cost nothing; the default, also if it is empty
	CopyInputs = "copy" // copies of their own, which they may change
)

// How tasks are traced. Either way a trace of each attempt stays in its directory.
const (
	TraceProcesses = "processes" // the starts and ends of their processes, with what each has used
	TraceIO        = "io"        // also every call that moves bytes
)

// RunTasks counts the tasks of a run by what they are doing; the counts add up to Total.
type RunTasks struct {
	Total   int `json:"total"`
	Waiting int `json:"waiting"` // for a parent
	Ready   int `json:"ready"`   // for a worker
	Running int `json:"running"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`  // for good
	Skipped int `json:"skipped"` // below a failed task: can never run
}

// A TaskState says how far a task of a run is. The counts of RunTasks have the same names.
type TaskState string

const (
	TaskWaiting TaskState = "waiting" // for a parent
	TaskReady   TaskState = "ready"   // for a worker
	TaskRunning TaskState = "running"
	TaskDone    TaskState = "done"
	TaskFailed  TaskState = "failed"  // for good
	TaskSkipped TaskState = "skipped" // below a failed task: can never run
)

// Over reports whether a task in state s runs no more, unless it is tried again.
func (s TaskState) Over() bool { return s == TaskDone || s == TaskFailed || s == TaskSkipped }

// TaskStates lists all states in their order of life.
var TaskStates = []TaskState{TaskWaiting, TaskReady, TaskRunning, TaskDone, TaskFailed, TaskSkipped}

// A RunReport compares what a run took with what it could have taken (Juve 2012 §2.8, with the proven
// bound beside the list schedule). Times are of the last attempt of each task, measured at the worker.
type RunReport struct {
	Makespan       Seconds `json:"makespan_s"`             // creation of the run to its last task's end
	TaskTime       Seconds `json:"cumulative_task_time_s"` // sum over tasks
	CPUs           int     `json:"cpus"`                   // most cpus that were registered at once
	Parallelism    float64 `json:"parallelism"`            // TaskTime / Makespan
	CriticalPath   Seconds `json:"critical_path_s"`
	LowerBound     Seconds `json:"lower_bound_s"`   // max(CriticalPath, work / CPUs): no schedule is shorter
	ListSchedule   Seconds `json:"list_schedule_s"` // highest upward rank first on CPUs cpus, no overhead
	OverBound      float64 `json:"makespan_over_lower_bound"`
	OverList       float64 `json:"makespan_over_list_schedule"`
	LostWork       Seconds `json:"lost_work_s"` // in tasks cut off by a pilot's end or lost with a worker
	Requeued       int     `json:"requeued"`    // times a task was queued again without using a retry
	RetriesUsed    int     `json:"retries_used"`
	LargerRetries  int     `json:"larger_retries,omitempty"` // of these, with more memory
	MemoryKills    int     `json:"memory_kills,omitempty"`   // attempts that used more memory than they may have
	WaitForWorkers Seconds `json:"wait_for_workers_s"`       // creation of the run to its first task's start
	// Typical overheads of the cluster; absent if too few tasks were measured.
	Hop       Seconds        `json:"hop_s,omitempty"`   // from the last parent's end to the start on a free worker
	Hops      int            `json:"hops,omitempty"`    // tasks that it rests on
	Reuse     Seconds        `json:"reuse_s,omitempty"` // from a task's end to the start, there, of one that waited
	Reuses    int            `json:"reuses,omitempty"`
	PeakRate  float64        `json:"peak_starts_per_s,omitempty"`
	Transfers []SiteTransfer `json:"transfers,omitempty"` // where workers do not see the run's directory

	// Misbehaviour of tasks.
	OverCPUs      []OverCPUs     `json:"over_cpus,omitempty"`      // by transformation
	ChangedInputs []ChangedInput `json:"changed_inputs,omitempty"` // the first of them
}

// OverCPUs says that tasks of a transformation kept more cpus busy than they asked for. Nothing stops them, but they
// take what others on the same worker were promised.
type OverCPUs struct {
	Transformation string  `json:"transformation"`
	Tasks          int     `json:"tasks"`  // that did
	Factor         float64 `json:"factor"` // the most that one of them used, in what it asked for
	Task           string  `json:"task"`   // that one
}

// A ChangedInput is a file that a task changed in place although it is not among the task's outputs: other tasks, and a
// retry of the same task, read the changed file.
type ChangedInput struct {
	Task string `json:"task"`
	File string `json:"file"`
}

// A SiteTransfer says what the way of files to a site's workers and back took, once for each job.
type SiteTransfer struct {
	Site      string  `json:"site"`
	Jobs      int     `json:"jobs"`
	Bytes     int64   `json:"bytes"`
	Took      Seconds `json:"took_s"`                // sum over jobs, which travel side by side
	Latency   Seconds `json:"latency_s"`             // of a job, however small its files are
	Bandwidth float64 `json:"bytes_per_s,omitempty"` // that a job had; absent: its files were too small to tell
}

// A Run drives one workflow on one cluster.
type Run struct {
	ID          RunID             `json:"id"`
	Owner       string            `json:"owner"`
	Cluster     ClusterID         `json:"cluster_id"`
	ClusterName string            `json:"cluster"`
	Workflow    string            `json:"workflow"` // its name
	Dir         string            `json:"dir"`      // D: data, tasks, journal, workflow.json
	Options     RunOptions        `json:"options"`
	Labels      map[string]string `json:"labels,omitempty"`
	State       RunState          `json:"state"`
	Reason      string            `json:"reason,omitempty"`
	Tasks       RunTasks          `json:"tasks"`
	Report      *RunReport        `json:"report,omitempty"` // once it is over
	CreatedAt   time.Time         `json:"created_at"`
	EndedAt     time.Time         `json:"ended_at,omitzero"`
	UpdatedAt   time.Time         `json:"updated_at"`

	ExpectedEnd time.Time `json:"expected_end,omitzero"` // of one that goes on; zero: unknown. It is not stored
	Open        bool      `json:"open,omitempty"`        // tasks may be added to it now. It is not stored
	Unreachable *Outage   `json:"unreachable,omitempty"` // of its cluster's workers; nil: none is. It is not stored
}

// Over reports whether nothing of the run is running or queued in state s.
func (s RunState) Over() bool { return s != RunRunning && s != RunCancelling }

// Apply moves the run by one event; no other code sets State.
func (r Run) Apply(move RunMove, reason string, now time.Time) (Run, []Entry, error) {
	from := r.State
	next, err := RunMoves.Next(from, move)
	if err != nil {
		return r, nil, ErrorAt(Conflict, fmt.Sprintf("run %d (%s)", r.ID, r.Workflow), "%w", err)
	}
	r.State, r.Reason, r.UpdatedAt = next, reason, latest(now, r.UpdatedAt)
	if next.Over() && next != RunDeleted {
		r.EndedAt = r.UpdatedAt
	} else if !next.Over() {
		r.EndedAt, r.Report = time.Time{}, nil
	}
	return r, []Entry{{Object: ObjectRun, Of: int64(r.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}
