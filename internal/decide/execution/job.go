package execution

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// StartMargin is the minimum time by which a worker must outlast the estimate of its job. Every decision whether a
// worker could take a job must include it; otherwise the job would wait for a worker that never receives it.
const StartMargin = 500 * time.Millisecond

// SubmitSize is the maximum number of jobs that are completed and submitted at once, so that the first of many jobs
// start early.
const SubmitSize = 1000

// A Task is one process to run, in a fresh directory of its own.
type Task struct {
	Index    int           `json:"index"`   // in the workflow; the run's key of the task
	ID       string        `json:"id"`      // names the directory: D/tasks/ID.ATTEMPT
	Attempt  int           `json:"attempt"` // 1 for the first
	Argv     []string      `json:"argv"`
	Env      []string      `json:"env,omitempty"`    // KEY=VALUE, added to the worker's minimal environment
	Stdin    string        `json:"stdin,omitempty"`  // file in the task's directory; empty: /dev/null
	Stdout   string        `json:"stdout,omitempty"` // file in the task's directory; empty: "stdout"
	Stderr   string        `json:"stderr,omitempty"` // likewise; empty: "stderr"
	Inputs   []string      `json:"inputs,omitempty"` // names below D/data, linked into the directory
	Outputs  []string      `json:"outputs,omitempty"`
	Judged   bool          `json:"judged,omitempty"`     // a POST script examines its outputs, even after a failure
	Timeout  time.Duration `json:"timeout_ns,omitempty"` // 0: none
	Estimate time.Duration `json:"estimate_ns"`          // assumed runtime; never 0
	Manner
}

// A Manner holds the properties of a task that was added to an open run. It is zero for other tasks.
type Manner struct {
	Dir   string        `json:"dir,omitempty"`      // where it runs; empty: in its own directory
	Note  string        `json:"note,omitempty"`     // input whose path is in its environment; empty: none
	Grace time.Duration `json:"grace_ns,omitempty"` // from SIGTERM to SIGKILL; 0: the executor's own
}

// Streams names the files of the task's output streams, in its directory.
func (t *Task) Streams() (stdout, stderr string) {
	return cmp.Or(t.Stdout, "stdout"), cmp.Or(t.Stderr, "stderr")
}

// A Job is dispatched to a worker as a whole: one task, or several (a clustered job) that run one after
// the other in the worker's one slot for them.
type Job struct {
	Run       corral.RunID `json:"run"`
	Seq       int64        `json:"seq"`            // unique within the run, never used again
	Dir       string       `json:"dir"`            // D, the absolute path of the run's directory
	Mark      string       `json:"mark,omitempty"` // of D, see executor.Mark; empty: D is not checked
	CPUs      int          `json:"cpus"`
	MemoryMiB int          `json:"memory_mib"`
	GPUs      int          `json:"gpus,omitempty"`
	DiskMiB   int          `json:"disk_mib,omitempty"`
	Pack      bool         `json:"pack,omitempty"` // remove the directories of tasks that are done and left no files
	Leaf      bool         `json:"leaf,omitempty"` // no other task waits for one of these
	Class     int          `json:"-"`              // the workflow's priority: highest first among ready jobs
	Priority  float64      `json:"-"`              // highest first within a class
	Tasks     []Task       `json:"tasks"`
	More      bool         `json:"-"` // MemoryMiB is more than the workflow requests: see Assignment

	// Ordered: tasks depend on earlier tasks of the job. If a task is not done, the worker returns the tasks after it.
	Ordered bool `json:"ordered,omitempty"`

	Care
}

// A Care holds a run's options for how workers handle its tasks.
type Care struct {
	CopyInputs bool   `json:"copy_inputs,omitempty"` // false: inputs are links
	Trace      string `json:"trace,omitempty"`       // how tasks are traced, as in RunOptions.Trace; empty: not traced
}

// A Key identifies a job within a cluster.
type Key struct {
	Run corral.RunID `json:"run"`
	Seq int64        `json:"seq"`
}

// Key returns the job's key.
func (j Job) Key() Key { return Key{j.Run, j.Seq} }

// Needs returns the resources that the job uses of its worker while it runs.
func (j Job) Needs() corral.Resources {
	return corral.Resources{CPUs: j.CPUs, MemoryMiB: j.MemoryMiB, GPUs: j.GPUs, DiskMiB: j.DiskMiB}
}

// MemoryLimit returns the memory that a task of the job may use on a worker of this shape: the requested memory, or
// else a share in proportion to the job's cpus; 0 means unknown.
func (j Job) MemoryLimit(worker corral.Resources) (mib int, asked bool) {
	if j.MemoryMiB > 0 || worker.CPUs <= 0 {
		return j.MemoryMiB, j.MemoryMiB > 0
	}
	return int(int64(worker.MemoryMiB) * int64(min(max(1, j.CPUs), worker.CPUs)) / int64(worker.CPUs)), false
}

// Estimate returns the sum of the tasks' estimates.
func (j Job) Estimate() time.Duration {
	var sum time.Duration
	for _, t := range j.Tasks {
		sum += t.Estimate
	}
	return sum
}

// A Status describes how one execution of a task ended.
type Status string

const (
	Done      Status = "done"      // exit status 0 and every declared output published
	Failed    Status = "failed"    // any other end that the task itself caused; uses a retry
	Cut       Status = "cut"       // killed because its worker had to leave; not caused by the task
	Cancelled Status = "cancelled" // killed because its run was cancelled
)

// A Cause distinguishes executions with the same Status if a decision depends on it. It is usually empty.
type Cause string

// OverMemory is the cause of a failure: the worker killed the task because it exceeded its memory limit. It used at
// least MaxRSSKiB.
const OverMemory Cause = corral.CauseMemory

// The other causes are only reported.
const (
	OverTime   Cause = corral.CauseTime
	Withdrawn  Cause = corral.CauseWithdrawn
	LostWorker Cause = corral.CauseLostWorker
	Never      Cause = corral.CauseNever
)

// A Result is the record of one execution of a task, as the worker measured it.
type Result struct {
	Key       Key       `json:"key"`
	Index     int       `json:"index"`
	Attempt   int       `json:"attempt"`
	Status    Status    `json:"status"`
	Cause     Cause     `json:"cause,omitempty"`
	Exit      int       `json:"exit"`             // exit status; -1 if there is none
	Signal    string    `json:"signal,omitempty"` // that ended it, if one did
	Reason    string    `json:"reason,omitempty"` // reason why it is not Done, in one sentence
	Worker    string    `json:"worker"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Usage
	Travel  Travel   `json:"travel,omitzero"`
	Changed []string `json:"changed,omitempty"` // inputs that differ after the execution, at most MostChanged
}

// MostChanged is the maximum number of changed inputs that a result names.
const MostChanged = 8

// A Travel is the time of the transfers of a task's files to and from a worker that does not see the run's directory.
// The inputs of all tasks of a job arrive together: they count for the first task.
type Travel struct {
	In    time.Duration `json:"in_ns,omitempty"`  // until the task could begin
	Out   time.Duration `json:"out_ns,omitempty"` // from the end of the task until its outputs were in place
	Bytes int64         `json:"bytes,omitempty"`  // both ways
}

// Usage holds the resources that an execution of a task used, as far as they were measured: those of its process and of
// the child processes that were waited for.
type Usage struct {
	UserCPU      time.Duration `json:"user_cpu_ns"`
	SysCPU       time.Duration `json:"sys_cpu_ns"`
	MaxRSSKiB    int64         `json:"max_rss_kib"`          // of one process, at first its worker's; +cgroup: of all
	ReadBytes    int64         `json:"read_bytes,omitempty"` // by system calls, whether or not they reached a disk
	WrittenBytes int64         `json:"written_bytes,omitempty"`
	MeasuredBy   Source        `json:"measured_by,omitempty"` // empty: not measured, or measured by an older worker
}

// A Source names the origin of a Usage. A long task may have run in its own control group: then +cgroup1 or +cgroup2
// follows, and the memory is that of all its processes together, and the cpu time includes processes that were not
// waited for.
type Source string

const (
	ByRusage     Source = "rusage"      // wait4(2); bytes are unknown
	ByRusageProc Source = "rusage+proc" // also bytes, from /proc/PID/io
	ByTrace      Source = "+ptrace"     // suffix if a trace has contributed
)
