package slurm

// Jobs are converted from tasks as follows: a job's number is its task's number plus the folder's base; an array is a
// series of tasks with the same attributes, and its number is that of its first task.

import (
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A job is a job of Slurm: a single job, or a task of an array.
type job struct {
	ID        int               // JobIDRaw
	ArrayID   int               // the array's id, which is the ID of its first task; 0: not in an array
	ArrayTask int               // number of the task in the array, as in --array
	Name      string            // several jobs may share it
	Spec      *spec             // tasks of an array may share it; never changed
	State     state             // as in squeue -t
	Reason    reason            // why it waits, or why it failed
	Exit      notation.ExitCode // of the script
	Node      string            // worker; empty before it starts
	Restarts  int               // number of restarts
	Priority  int64             // jobs with a higher priority start first

	// The times of its events, or zero: the start of a job that waits for others cannot be predicted.
	Submitted, Eligible, Started, Ended time.Time
}

// A spec is the information about a job at its submission, which never changes. It is stored in an attribute of a task;
// all tasks of an array have the same spec.
type spec struct {
	User       submitter      `json:"user"`
	Partition  string         `json:"partition"`              // the cluster
	Account    string         `json:"account,omitempty"`      // -A; nothing is billed to it
	Comment    string         `json:"comment,omitempty"`      // --comment: Snakemake stores its rules there
	QOS        string         `json:"qos,omitempty"`          // -q; empty: "normal"
	Command    string         `json:"command,omitempty"`      // the script, absolute, and arguments; empty: --wrap
	Submit     string         `json:"submit,omitempty"`       // the command line of sbatch
	Host       string         `json:"host,omitempty"`         // the host of the submission
	Directory  string         `json:"directory,omitempty"`    // where it runs: absolute, like the names of its files,
	Input      string         `json:"input,omitempty"`        // which may contain patterns, because each task of an
	Output     string         `json:"output,omitempty"`       // array has its own files
	Error      string         `json:"error,omitempty"`        // empty: the same as Output
	Size       notation.Size  `json:"size"`                   // the resources that it uses
	TimeLimit  corral.Seconds `json:"time_limit_s,omitempty"` // 0: none
	Array      string         `json:"array,omitempty"`        // argument of --array; empty: not an array
	Dependency string         `json:"dependency,omitempty"`   // conditions as in "afterok:12,afterany:13"
	KillOrphan bool           `json:"kill_orphan,omitempty"`  // cancelled when Dependency can no longer be met
	Requeue    bool           `json:"requeue,omitempty"`      // restarted if its worker is lost
	Nice       int            `json:"nice,omitempty"`         // the amount by which its priority is lowered
}

// A submitter is the user who submitted a job, on the machine of the submission.
type submitter struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	UID   int    `json:"uid,omitempty"`
	GID   int    `json:"gid,omitempty"`
}

// specAttribute is the attribute of a task that contains its spec as JSON. With ten thousand tasks, one text is read
// faster than many attributes, and tasks of an array share it.
const specAttribute = "slurm"

// attributes encodes a spec as attributes of a task.
func (s *spec) attributes() (map[string]string, error) {
	b, err := json.Marshal(s)
	return map[string]string{specAttribute: string(b)}, err
}

// A reader converts tasks to jobs. It caches the texts that it has parsed, and records whether it has already returned
// a job that waits for resources: later jobs wait because of their priority.
type reader struct {
	base   int64                      // to be added to a task's number
	specs  map[string]*spec           // encoded :: parsed
	arrays map[string]*notation.Array // argument of --array :: parsed
	first  bool                       // a job that waits for resources has been seen
}

func newReader(f Folder) *reader {
	return &reader{base: f.Base(), specs: map[string]*spec{}, arrays: map[string]*notation.Array{}}
}

const (
	firstPriority = 4294901760 // of Slurm's first job; each later one has a lower priority
	topPriority   = 1<<32 - 3  // the maximum, and the value of "TOP"; 0 would be a held job
)

// job converts a task to a job. Tasks must be passed in the order of their numbers.
func (r *reader) job(t api.TaskStatus) job {
	s, id := r.spec(t.Attributes[specAttribute]), int(r.base)+t.Number
	j := job{
		ID: id, Name: t.Name, Spec: s, Node: node(t.Worker), Restarts: max(0, t.Attempts-1), Exit: exitOf(t),
		Reason: noReason, Priority: max(1, min(topPriority, firstPriority-int64(id+s.Nice))),
		Submitted: t.AddedAt.Local(), Started: t.StartedAt.Local(), Ended: over(t),
	}
	if s.Array != "" {
		j.ArrayID, j.ArrayTask = id-t.Element, r.arrayTask(s.Array, t.Element)
	}
	if s.Dependency == "" {
		j.Eligible = j.Submitted
	}
	switch t.State {
	case corral.TaskWaiting, corral.TaskReady:
		j.wait(r.waitsFor(t.State, s))
	case corral.TaskRunning:
		j.State, j.Ended = running, time.Time{} // a known end belongs to an earlier attempt
		if t.Cause == corral.CauseWithdrawn {
			j.State, j.Exit = completing, notation.ExitCode{}
		}
	case corral.TaskDone:
		j.State = completed // regardless of its dependencies
	default:
		j.fail(t)
	}
	if j.State != pending && j.Eligible.IsZero() {
		j.Eligible = j.Started
	}
	return j
}

// wait makes a job a waiting one, which has no worker.
func (j *job) wait(why reason) {
	j.State, j.Reason = pending, why
	j.Node, j.Started, j.Ended = "", time.Time{}, time.Time{}
}

// waitsFor returns the reason why a job with this state has not begun.
func (r *reader) waitsFor(s corral.TaskState, of *spec) reason {
	switch {
	case s == corral.TaskWaiting && of.Dependency != "":
		return forDependency
	case s == corral.TaskWaiting: // for others of its array, only some of which run at a time
		return forArray
	case !r.first:
		r.first = true
		return forResources
	}
	return forPriority
}

// fail sets the state of a task that failed. A skipped task waits for a condition that can no longer be met, until it
// is cancelled.
func (j *job) fail(t api.TaskStatus) {
	cause := t.Cause
	if t.State == corral.TaskSkipped && cause == "" {
		cause = corral.CauseNever
	}
	end, known := ends[cause]
	switch {
	case cause == corral.CauseNever && !j.Spec.KillOrphan: // it stays in the list of waiting jobs
		j.Exit = notation.ExitCode{}
		j.wait(neverSatisfied)
	case cause == corral.CauseWithdrawn && t.Attempts > 0: // its script may have handled the signal
		j.State = cancelled
	case known:
		j.State, j.Reason, j.Exit = end.state, end.reason, end.exit
	default:
		j.State, j.Reason = failed, nonZeroExit
		if j.Exit.Status == 0 {
			j.Reason = launchFailure // a signal, or a failed start
		}
		if j.Exit == (notation.ExitCode{}) {
			j.Exit.Status = 1 // it failed without an exit status
		}
	}
}

// spec parses a spec, once for all tasks that share it. Users may add tasks to a shim's run themselves, and expect to
// see those tasks: fields that cannot be parsed are zero.
func (r *reader) spec(text string) *spec {
	s, ok := r.specs[text]
	if !ok {
		s = &spec{}
		_ = json.Unmarshal([]byte(text), s)
		r.specs[text] = s
	}
	return s
}

// array parses the argument of --array, once for all tasks that share it. The result is empty if sbatch has not written
// the text.
func (r *reader) array(text string) *notation.Array {
	a, ok := r.arrays[text]
	if !ok {
		if a, _ = notation.ParseArray(text, notation.MaxTask); a == nil {
			a = &notation.Array{}
		}
		r.arrays[text] = a
	}
	return a
}

// arrayTask returns the number of an element of an array.
func (r *reader) arrayTask(text string, element int) int {
	tasks := r.array(text).Tasks
	if element < 0 || element >= len(tasks) { // attributes that the shim has not written
		return element
	}
	return tasks[element]
}

// over returns the time at which a task ended, in whatever way.
func over(t api.TaskStatus) time.Time {
	if !t.OverAt.IsZero() {
		return t.OverAt.Local()
	}
	return t.EndedAt.Local()
}

// node returns the name of a worker as a node of Slurm: names of nodes contain no dots or slashes.
func node(worker string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/. ,[]", r) {
			return '-'
		}
		return r
	}, worker)
}

// killedBy is the prefix of the reason for a task that was ended by a signal.
const killedBy = "killed by "

// exitOf returns the status or signal with which a task's process ended, as far as its worker has reported it.
func exitOf(t api.TaskStatus) (code notation.ExitCode) {
	// For a process that was ended by a signal, the worker names the signal in the reason, and reports no status.
	if t.ExitStatus != nil && *t.ExitStatus >= 0 {
		code.Status = *t.ExitStatus // also for a process that handled the signal that asked it to end
		return code
	}
	if name, ok := strings.CutPrefix(t.Reason, killedBy); ok {
		code.Signal = int(unix.SignalNum(name)) // of all signals; ParseSignal accepts those that jobs can be sent
		if number, ok := strings.CutPrefix(name, "signal "); ok {
			code.Signal, _ = strconv.Atoi(number)
		}
	}
	// A worker that kills a withdrawn task reports nothing more. Slurm sends SIGTERM, which clients expect.
	if t.Cause == corral.CauseWithdrawn && t.Attempts > 0 {
		code.Signal = int(syscall.SIGTERM)
	}
	return code
}
