package job

import (
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Task is a task of an open run, as returned by Corral's API.
type Task struct {
	ID         int    // of the job: the task's number plus the shim's base
	Element    int    // index in its array, from 0
	Name       string // as in --job-name
	State      corral.TaskState
	Cause      string            // corral.CauseMemory and the like
	Exit       notation.ExitCode // of its last attempt, if a worker has reported it
	Worker     string            // of its last attempt
	Begun      int               // number of attempts assigned to a worker
	Times      Times             // Eligible may be zero: Job fills it in
	Attributes map[string]string // a Spec, encoded by Attributes
}

// A Reader converts tasks to jobs. It caches the texts that it has parsed, and records whether it has already returned
// a job that waits for resources: later jobs wait because of their priority. The zero value is ready to use.
type Reader struct {
	specs  map[string]*Spec           // text of Attributes :: parsed
	arrays map[string]*notation.Array // argument of --array :: parsed
	first  bool                       // a job that waits for resources has been seen
}

const (
	firstPriority = 4294901760 // of Slurm's first job; each later one has a lower priority
	topPriority   = 4294967293 // the maximum; 0 would be a held job
)

// Job converts a task to a job. Tasks must be passed in the order of their numbers.
func (r *Reader) Job(t Task) Job {
	spec := r.spec(t.Attributes)
	j := Job{
		ID: t.ID, Name: t.Name, Spec: spec, Node: t.Worker, Restarts: max(0, t.Begun-1), Exit: t.Exit, Times: t.Times,
		Reason: None, Priority: max(1, min(topPriority, firstPriority-int64(t.ID+spec.Nice))),
	}
	if spec.Array != "" {
		j.ArrayID, j.ArrayTask = t.ID-t.Element, r.arrayTask(spec.Array, t.Element)
	}
	if spec.Dependency == "" && j.Times.Eligible.IsZero() {
		j.Times.Eligible = j.Times.Submitted
	}
	switch t.State {
	case corral.TaskWaiting, corral.TaskReady:
		j.State, j.Reason = Pending, r.waitsFor(t.State, spec)
		j.Node, j.Times.Started, j.Times.Ended = "", time.Time{}, time.Time{}
	case corral.TaskRunning:
		j.State, j.Times.Ended = Running, time.Time{} // a known end belongs to an earlier attempt
		if t.Cause == corral.CauseWithdrawn {
			j.State, j.Exit = Completing, notation.ExitCode{}
		}
	case corral.TaskDone:
		j.State = Completed // regardless of its dependencies
	default:
		j.fail(t)
	}
	if j.State != Pending && j.Times.Eligible.IsZero() {
		j.Times.Eligible = j.Times.Started
	}
	return j
}

// waitsFor returns the reason why a job with this state has not begun.
func (r *Reader) waitsFor(state corral.TaskState, spec *Spec) Reason {
	switch {
	case state == corral.TaskWaiting && spec.Dependency != "":
		return ForDependency
	case state == corral.TaskWaiting: // for others of its array, only some of which run at a time
		return ForArray
	case !r.first:
		r.first = true
		return ForResources
	}
	return ForPriority
}

// fail sets the state of a task that failed. A skipped task waits for a condition that can no longer be met, until it
// is cancelled. If a job was ended from outside, the exit code of its process is ignored: Slurm sends SIGTERM, and
// clients recognize such jobs by that signal.
func (j *Job) fail(t Task) {
	cause := t.Cause
	if t.State == corral.TaskSkipped && cause == "" {
		cause = corral.CauseNever
	}
	switch cause {
	case corral.CauseMemory:
		j.State, j.Reason, j.Exit = OutOfMem, OutOfMemory, notation.ExitCode{Signal: 125} // like Slurm
	case corral.CauseTime:
		j.State, j.Reason, j.Exit = Timeout, TimeLimit, notation.ExitCode{Signal: 15}
	case corral.CauseLostWorker:
		j.State, j.Reason, j.Exit = NodeFail, NodeDown, notation.ExitCode{}
	case corral.CauseNever:
		if !j.Spec.KillOrphan { // it stays in the list of waiting jobs
			j.State, j.Reason, j.Exit = Pending, NeverSatisfied, notation.ExitCode{}
			j.Node, j.Times.Started, j.Times.Ended = "", time.Time{}, time.Time{}
			return
		}
		j.State, j.Exit = Cancelled, notation.ExitCode{}
	case corral.CauseWithdrawn:
		j.State = Cancelled
		if t.Begun == 0 { // otherwise its script may have handled the signal
			j.Exit = notation.ExitCode{}
		}
	default:
		j.State, j.Reason = Failed, NonZeroExit
		if j.Exit.Status == 0 {
			j.Reason = LaunchFailure // a signal, or a failed start
		}
		if j.Exit == (notation.ExitCode{}) {
			j.Exit.Status = 1 // it failed without an exit status
		}
	}
}

// spec parses a Spec, once for all tasks that share it.
func (r *Reader) spec(attributes map[string]string) *Spec {
	text := attributes[Attribute]
	s, ok := r.specs[text]
	if !ok {
		s = ParseSpec(attributes)
		if r.specs == nil {
			r.specs = map[string]*Spec{}
		}
		r.specs[text] = s
	}
	return s
}

// arrayTask returns the number of an element of an array.
func (r *Reader) arrayTask(text string, element int) int {
	a, ok := r.arrays[text]
	if !ok {
		a, _ = notation.ParseArray(text, notation.MaxTask)
		if r.arrays == nil {
			r.arrays = map[string]*notation.Array{}
		}
		r.arrays[text] = a
	}
	if a == nil || element < 0 || element >= a.Len() { // attributes that the shim has not written
		return element
	}
	return a.At(element)
}

// texts, numbers and flags map keys to the fields of a Spec.
var (
	texts = []struct {
		key string
		of  func(*Spec) *string
	}{
		{"user", func(s *Spec) *string { return &s.User.Name }},
		{"group", func(s *Spec) *string { return &s.User.Group }},
		{"partition", func(s *Spec) *string { return &s.Partition }},
		{"account", func(s *Spec) *string { return &s.Account }},
		{"comment", func(s *Spec) *string { return &s.Comment }},
		{"qos", func(s *Spec) *string { return &s.QOS }},
		{"command", func(s *Spec) *string { return &s.Command.Line }},
		{"host", func(s *Spec) *string { return &s.Command.Host }},
		{"submit", func(s *Spec) *string { return &s.Command.Submit }},
		{"directory", func(s *Spec) *string { return &s.Files.Directory }},
		{"input", func(s *Spec) *string { return &s.Files.Input }},
		{"output", func(s *Spec) *string { return &s.Files.Output }},
		{"error", func(s *Spec) *string { return &s.Files.Error }},
		{"array", func(s *Spec) *string { return &s.Array }},
		{"dependency", func(s *Spec) *string { return &s.Dependency }},
	}
	numbers = []struct {
		key string
		of  func(*Spec) *int
	}{
		{"uid", func(s *Spec) *int { return &s.User.UID }}, {"gid", func(s *Spec) *int { return &s.User.GID }},
		{"cpus", func(s *Spec) *int { return &s.Size.CPUs }}, {"tasks", func(s *Spec) *int { return &s.Size.Tasks }},
		{"cpus_per_task", func(s *Spec) *int { return &s.Size.CPUsPerTask }},
		{"gpus", func(s *Spec) *int { return &s.Size.GPUs }}, {"nice", func(s *Spec) *int { return &s.Nice }},
	}
	flags = []struct {
		key string
		of  func(*Spec) *bool
	}{
		{"memory_each", func(s *Spec) *bool { return &s.Size.MemoryEach }},
		{"requeue", func(s *Spec) *bool { return &s.Requeue }},
		{"kill_orphan", func(s *Spec) *bool { return &s.KillOrphan }},
	}
)

// Attribute is the attribute of a task that contains its Spec, as lines of key=value. With ten thousand tasks, one text
// is read faster than many attributes, and tasks of an array share it.
const Attribute = "slurm"

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// Attributes encodes a Spec as attributes of a task. Zero values are omitted.
func (s *Spec) Attributes() map[string]string {
	var b strings.Builder
	set := func(key, value string, is bool) {
		if is {
			b.WriteString(key + "=" + escape.Replace(value) + "\n")
		}
	}
	for _, f := range texts {
		set(f.key, *f.of(s), *f.of(s) != "")
	}
	for _, f := range numbers {
		set(f.key, strconv.Itoa(*f.of(s)), *f.of(s) != 0)
	}
	for _, f := range flags {
		set(f.key, "true", *f.of(s))
	}
	set("memory_mib", strconv.FormatInt(s.Size.MemoryMiB, 10), s.Size.MemoryMiB != 0)
	set("time_limit", s.TimeLimit.String(), s.TimeLimit != 0)
	return map[string]string{Attribute: b.String()}
}

// ParseSpec decodes the result of Attributes. Fields that it cannot parse are zero: users may add tasks to a shim's run
// themselves, and expect to see those tasks.
func ParseSpec(attributes map[string]string) *Spec {
	values := map[string]string{}
	for line := range strings.Lines(attributes[Attribute]) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[key] = unescape.Replace(value)
	}
	s := &Spec{}
	for _, f := range texts {
		*f.of(s) = values[f.key]
	}
	for _, f := range numbers {
		*f.of(s), _ = strconv.Atoi(values[f.key])
	}
	for _, f := range flags {
		*f.of(s) = values[f.key] == "true"
	}
	s.Size.MemoryMiB, _ = strconv.ParseInt(values["memory_mib"], 10, 64)
	s.TimeLimit, _ = time.ParseDuration(values["time_limit"])
	return s
}
