package corral

import (
	"fmt"
	"time"
)

// RunID identifies a run.
type RunID int64

// A RunState describes the activity of a run.
type RunState string

const (
	RunRunning    RunState = "RUNNING"    // ready tasks are submitted to the cluster
	RunCancelling RunState = "CANCELLING" // running tasks are being killed
	RunSucceeded  RunState = "SUCCEEDED"  // every task succeeded
	RunFailed     RunState = "FAILED"     // a task failed permanently; tasks that did not depend on it were finished
	RunStalled    RunState = "STALLED"    // no present or requested worker could run the ready tasks
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
	Clustering     string  `json:"clustering"`             // a clustering.Rule; auto was resolved before
	Retries        int     `json:"retries"`                // of each task, unless the task specifies another number
	RetryUnless    string  `json:"retry_unless,omitempty"` // exit statuses that are not retried, as in 3,64
	CrashLimit     int     `json:"crash_limit,omitempty"`  // lost workers after which a task fails; -1: no limit
	Stall          Seconds `json:"stall_s"`                // time a task may be ready without a suitable worker
	DefaultRuntime Seconds `json:"default_runtime_s"`      // assumed for a task without an estimate
	KeepTasks      bool    `json:"keep_tasks,omitempty"`   // also directories of attempts that left only outputs
	Inputs         string  `json:"inputs,omitempty"`       // how tasks receive inputs: LinkInputs, CopyInputs
	Priority       int     `json:"priority,omitempty"`     // added to its tasks' own; the largest sum starts first
	Trace          string  `json:"trace,omitempty"`        // how tasks are traced: TraceProcesses, TraceIO; empty: not
	Stream         bool    `json:"stream,omitempty"`       // tasks go to worker jobs, on a cluster of kind Condor
	Open           bool    `json:"open,omitempty"`         // it has no workflow: tasks are added during the run
}

// How tasks receive their inputs. A file that is also an output of the task is always copied.
const (
	LinkInputs = "link" // links to the run's files, without cost; the default, also if empty
	CopyInputs = "copy" // private copies, which tasks may change
)

// How tasks are traced. In both modes the trace of each attempt stays in its directory.
const (
	TraceProcesses = "processes" // the starts and ends of their processes, with the resources used
	TraceIO        = "io"        // also every call that moves bytes
)

// RunTasks counts the tasks of a run by state; the counts add up to Total.
type RunTasks struct {
	Total   int `json:"total"`
	Waiting int `json:"waiting"` // for a parent
	Ready   int `json:"ready"`   // for a worker
	Running int `json:"running"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`  // failed permanently
	Skipped int `json:"skipped"` // below a failed task: can never run
}

// A TaskState describes the progress of a task of a run. The counts of RunTasks have the same names.
type TaskState string

const (
	TaskWaiting TaskState = "waiting" // for a parent
	TaskReady   TaskState = "ready"   // for a worker
	TaskRunning TaskState = "running"
	TaskDone    TaskState = "done"
	TaskFailed  TaskState = "failed"  // failed permanently
	TaskSkipped TaskState = "skipped" // below a failed task: can never run
)

// Over reports whether a task in state s is finished, unless it is retried later.
func (s TaskState) Over() bool { return s == TaskDone || s == TaskFailed || s == TaskSkipped }

// TaskStates lists all states in their order of life.
var TaskStates = []TaskState{TaskWaiting, TaskReady, TaskRunning, TaskDone, TaskFailed, TaskSkipped}

// A RunReport compares a run's makespan with the shortest possible one (Juve 2012 §2.8, with a proven bound in addition
// to the list schedule). Times are those of each task's last attempt, measured at the worker.
type RunReport struct {
	Makespan       Seconds `json:"makespan_s"`             // creation of the run to its last task's end
	TaskTime       Seconds `json:"cumulative_task_time_s"` // sum over tasks
	CPUs           int     `json:"cpus"`                   // maximum number of cpus registered at the same time
	Parallelism    float64 `json:"parallelism"`            // TaskTime / Makespan
	CriticalPath   Seconds `json:"critical_path_s"`
	LowerBound     Seconds `json:"lower_bound_s"`   // max(CriticalPath, work / CPUs): no schedule is shorter
	ListSchedule   Seconds `json:"list_schedule_s"` // highest upward rank first on CPUs cpus, no overhead
	OverBound      float64 `json:"makespan_over_lower_bound"`
	OverList       float64 `json:"makespan_over_list_schedule"`
	LostWork       Seconds `json:"lost_work_s"` // in tasks cut off by a pilot's end or lost with a worker
	Requeued       int     `json:"requeued"`    // times a task was queued again without using a retry
	RetriesUsed    int     `json:"retries_used"`
	LargerRetries  int     `json:"larger_retries,omitempty"` // number of these with more memory
	MemoryKills    int     `json:"memory_kills,omitempty"`   // attempts that exceeded their memory limit
	WaitForWorkers Seconds `json:"wait_for_workers_s"`       // creation of the run to its first task's start
	// Typical overheads of the cluster; absent if too few tasks were measured.
	Hop       Seconds        `json:"hop_s,omitempty"`   // from the last parent's end to the start on a free worker
	Hops      int            `json:"hops,omitempty"`    // tasks measured for Hop
	Reuse     Seconds        `json:"reuse_s,omitempty"` // from a task's end to the next waiting task's start there
	Reuses    int            `json:"reuses,omitempty"`
	PeakRate  float64        `json:"peak_starts_per_s,omitempty"`
	Transfers []SiteTransfer `json:"transfers,omitempty"` // where workers do not share the run's directory

	// LearnedMemory lists the transformations whose tasks begin with more memory because some were killed for it.
	LearnedMemory []LearnedMemory `json:"learned_memory,omitempty"`

	// Misbehaviour of tasks.
	OverCPUs      []OverCPUs     `json:"over_cpus,omitempty"`      // by transformation
	ChangedInputs []ChangedInput `json:"changed_inputs,omitempty"` // the first ones only
}

// LearnedMemory is the memory with which tasks of a transformation begin, in this run and in later runs of the
// workflow, if the workflow requests memory, but less.
type LearnedMemory struct {
	Transformation string `json:"transformation"`
	MemoryMiB      int    `json:"memory_mib"`
}

// OverCPUs reports that tasks of a transformation used more cpus than they requested. They are not stopped, but they
// slow down other tasks on the same worker.
type OverCPUs struct {
	Transformation string  `json:"transformation"`
	Tasks          int     `json:"tasks"`  // number of such tasks
	Factor         float64 `json:"factor"` // the highest ratio of cpus used to cpus requested
	Task           string  `json:"task"`   // the task with that ratio
}

// A ChangedInput is a file that a task changed in place although it is not among the task's outputs. Other tasks, and a
// retry of the same task, then read the changed file.
type ChangedInput struct {
	Task string `json:"task"`
	File string `json:"file"`
}

// A SiteTransfer summarizes the transfer of files to a site's workers and back, counted once per job.
type SiteTransfer struct {
	Site      string  `json:"site"`
	Jobs      int     `json:"jobs"`
	Bytes     int64   `json:"bytes"`
	Took      Seconds `json:"took_s"`                // sum over jobs, which transfer concurrently
	Latency   Seconds `json:"latency_s"`             // of a job, however small its files are
	Bandwidth float64 `json:"bytes_per_s,omitempty"` // per job; absent: its files were too small to measure
}

// A Run executes one workflow on one cluster.
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
	Report      *RunReport        `json:"report,omitempty"` // set once it is over
	CreatedAt   time.Time         `json:"created_at"`
	EndedAt     time.Time         `json:"ended_at,omitzero"`
	UpdatedAt   time.Time         `json:"updated_at"`

	ExpectedEnd time.Time `json:"expected_end,omitzero"` // of a run that is not over; zero: unknown. Not stored
	Open        bool      `json:"open,omitempty"`        // tasks may be added now. Not stored
	Unreachable *Outage   `json:"unreachable,omitempty"` // of its cluster's workers; nil: none is. Not stored
}

// Over reports whether a run in state s has no running or queued task left.
func (s RunState) Over() bool { return s != RunRunning && s != RunCancelling }

// Apply changes the run's state by one event; no other code sets State.
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
