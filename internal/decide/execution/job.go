package execution

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// StartMargin is how much longer than a job's estimate its worker must stay. Every decision whether a worker
// could take a job must allow for it, or the job waits for a worker that will never be given it.
const StartMargin = 500 * time.Millisecond

// SubmitSize bounds the jobs that are completed and submitted at once, so that the first of very many start early.
const SubmitSize = 1000

// A Task is one process to run, in a fresh directory of its own.
type Task struct {
	Index    int           `json:"index"`   // in its workflow: the run's key for it
	ID       string        `json:"id"`      // names the directory: D/tasks/ID.ATTEMPT
	Attempt  int           `json:"attempt"` // 1 for the first
	Argv     []string      `json:"argv"`
	Env      []string      `json:"env,omitempty"`    // KEY=VALUE, added to the worker's clean environment
	Stdin    string        `json:"stdin,omitempty"`  // file in the task's directory; empty: /dev/null
	Stdout   string        `json:"stdout,omitempty"` // file in the task's directory; empty: "stdout"
	Stderr   string        `json:"stderr,omitempty"` // likewise; empty: "stderr"
	Inputs   []string      `json:"inputs,omitempty"` // names below D/data, linked into the directory
	Outputs  []string      `json:"outputs,omitempty"`
	Judged   bool          `json:"judged,omitempty"`     // a POST script looks at its outputs, whatever its exit status
	Timeout  time.Duration `json:"timeout_ns,omitempty"` // 0: none
	Estimate time.Duration `json:"estimate_ns"`          // assumed runtime; never 0
	Manner
}

// A Manner is how a task runs that was added to an open run. It is zero for other tasks.
type Manner struct {
	Dir   string        `json:"dir,omitempty"`      // where it runs; empty: in its own directory
	Note  string        `json:"note,omitempty"`     // the input whose path is in its environment; empty: none
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
	Dir       string       `json:"dir"`            // D, the run's directory, absolute
	Mark      string       `json:"mark,omitempty"` // of D, see executor.Mark; empty: any directory of its name will do
	CPUs      int          `json:"cpus"`
	MemoryMiB int          `json:"memory_mib"`
	GPUs      int          `json:"gpus,omitempty"`
	DiskMiB   int          `json:"disk_mib,omitempty"`
	Pack      bool         `json:"pack,omitempty"` // remove the directories of tasks that are done and left no file
	Leaf      bool         `json:"leaf,omitempty"` // no other task waits for one of these
	Class     int          `json:"-"`              // the workflow's own priority: highest first among ready jobs
	Priority  float64      `json:"-"`              // highest first among those of one class
	Tasks     []Task       `json:"tasks"`

	// Ordered: its tasks depend on tasks before them. After one that is not done its worker hands back the others.
	Ordered bool `json:"ordered,omitempty"`

	Care
}

// A Care holds the wishes of a run beyond its tasks being run.
type Care struct {
	CopyInputs bool   `json:"copy_inputs,omitempty"` // else they are links
	Trace      string `json:"trace,omitempty"`       // how tasks are traced, as RunOptions.Trace; empty: they are not
}

// A Key identifies a job within a cluster.
type Key struct {
	Run corral.RunID `json:"run"`
	Seq int64        `json:"seq"`
}

// Key returns the job's key.
func (j Job) Key() Key { return Key{j.Run, j.Seq} }

// Needs returns what the job takes of its worker while it runs.
func (j Job) Needs() corral.Resources {
	return corral.Resources{CPUs: j.CPUs, MemoryMiB: j.MemoryMiB, GPUs: j.GPUs, DiskMiB: j.DiskMiB}
}

// MemoryLimit is how much memory a task of the job may use on a worker of this shape: as much as it requested, or else
// the share of the job's cpus in the worker's; 0: unknown.
func (j Job) MemoryLimit(worker corral.Resources) (mib int, asked bool) {
	if j.MemoryMiB > 0 || worker.CPUs <= 0 {
		return j.MemoryMiB, j.MemoryMiB > 0
	}
	return int(int64(worker.MemoryMiB) * int64(min(max(1, j.CPUs), worker.CPUs)) / int64(worker.CPUs)), false
}

// Estimate is the sum of the tasks' estimates.
func (j Job) Estimate() time.Duration {
	var sum time.Duration
	for _, t := range j.Tasks {
		sum += t.Estimate
	}
	return sum
}

// A Status is how one execution of a task ended.
type Status string

const (
	Done      Status = "done"      // exit status 0 and every declared output published
	Failed    Status = "failed"    // anything else that is the task's own doing; counts as a try
	Cut       Status = "cut"       // killed because its worker had to leave; not the task's doing
	Cancelled Status = "cancelled" // killed because its run was cancelled
)

// A Cause distinguishes executions of the same Status, where a decision depends on it. It is mostly empty.
type Cause string

// OverMemory is the cause of a failure: the worker killed the task, which used more memory than it may, at
// least MaxRSSKiB.
const OverMemory Cause = corral.CauseMemory

// Other causes are only reported.
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
	Reason    string    `json:"reason,omitempty"` // why it is not Done, in one sentence
	Worker    string    `json:"worker"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Usage
	Travel  Travel   `json:"travel,omitzero"`
	Changed []string `json:"changed,omitempty"` // inputs that were different in the end, at most MostChanged
}

// MostChanged is the maximum number of changed inputs that a result names.
const MostChanged = 8

// A Travel is the time that the files of a task were on their way to a worker that does not see its run's directory,
// and back. The inputs of all tasks of a job arrive together: they count for the first task.
type Travel struct {
	In    time.Duration `json:"in_ns,omitempty"`  // until it could be begun
	Out   time.Duration `json:"out_ns,omitempty"` // from its end until its outputs were where they belong
	Bytes int64         `json:"bytes,omitempty"`  // both ways
}

// Usage is the resources that an execution of a task used, as far as they were measured: those of its process and of
// those of its children that were waited for.
type Usage struct {
	UserCPU      time.Duration `json:"user_cpu_ns"`
	SysCPU       time.Duration `json:"sys_cpu_ns"`
	MaxRSSKiB    int64         `json:"max_rss_kib"`          // of one process, at first its worker's; +cgroup: of all
	ReadBytes    int64         `json:"read_bytes,omitempty"` // by system calls, whether or not they reached a disk
	WrittenBytes int64         `json:"written_bytes,omitempty"`
	MeasuredBy   Source        `json:"measured_by,omitempty"` // empty: nothing was measured, or an earlier worker did
}

// A Source names the origin of a Usage. A task that ran for long may have been in a control group of its own: then
// +cgroup1 or +cgroup2 follows, for memory of all its processes at once and cpu time also of those that were not waited
// for.
type Source string

const (
	ByRusage     Source = "rusage"      // wait4(2); bytes are not known
	ByRusageProc Source = "rusage+proc" // bytes, too: from /proc/PID/io
	ByTrace      Source = "+ptrace"     // follows if a trace has contributed
)
