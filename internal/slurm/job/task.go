package job

import (
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/slurm/notation"
)

// A Task is what Corral's API tells of a task of an open run.
type Task struct {
	ID         int               // of the job: the task's number, and what the shim adds to it
	Element    int               // which of its array, from 0
	Name       string            // as --job-name has it
	State      string            // waiting, ready, running, done, failed or skipped
	Cause      string            // why it failed: "", memory, time, withdrawn, lost-worker, never
	Exit       notation.ExitCode // of its last attempt
	Worker     string            // of its last attempt
	Begun      int               // attempts that a worker was given
	Times      Times             // Eligible may be zero: Job fills it in
	Attributes map[string]string // a Spec, written by Attributes
}

// A Reader makes jobs of tasks. It remembers the arrays that it has seen, and that one waits for resources: the others
// wait for that one. The zero value is ready.
type Reader struct {
	arrays map[string]*notation.Array // what followed --array :: read
	first  bool                       // a job that waits for resources was seen

	last     string // the attribute that was read last: all tasks of an array have the same
	lastSpec *Spec
}

// firstPriority is the priority of Slurm's first job; each later one has less.
const firstPriority = 4294901760

// Job maps a task to a job. Tasks come in the order of their numbers.
func (r *Reader) Job(t Task) Job {
	spec := r.spec(t.Attributes)
	j := Job{
		ID: t.ID, Name: t.Name, Spec: spec, Node: t.Worker, Restarts: max(0, t.Begun-1), Exit: t.Exit, Times: t.Times,
		Reason: None, Priority: firstPriority - int64(t.ID+spec.Nice),
	}
	if spec.Array != "" {
		j.ArrayID, j.ArrayTask = t.ID-t.Element, r.arrayTask(spec.Array, t.Element)
	}
	if spec.Dependency == "" && j.Times.Eligible.IsZero() {
		j.Times.Eligible = j.Times.Submitted
	}
	switch t.State {
	case "waiting", "ready", "skipped":
		j.State, j.Reason = Pending, r.waitsFor(t.State, spec)
		j.Node, j.Times.Started, j.Times.Ended = "", time.Time{}, time.Time{}
	case "running":
		j.State, j.Times.Ended = Running, time.Time{} // what is known of its end is of an attempt before
	case "done":
		j.State = Completed // whatever it waited for
	default:
		j.fail(t)
	}
	if j.State != Pending && j.Times.Eligible.IsZero() {
		j.Times.Eligible = j.Times.Started
	}
	return j
}

// spec reads attributes, unless they are those of the task before.
func (r *Reader) spec(attributes map[string]string) *Spec {
	if text := attributes[attribute]; r.lastSpec == nil || text != r.last {
		r.last, r.lastSpec = text, ParseSpec(attributes)
	}
	return r.lastSpec
}

// waitsFor is the reason of a job that a worker has not begun. What is skipped waits for what cannot come.
func (r *Reader) waitsFor(state string, spec *Spec) Reason {
	switch {
	case state == "skipped":
		return NeverSatisfied
	case state == "waiting" && spec.Dependency != "":
		return ForDependency
	case state == "waiting": // for others of its array, of which only some run at a time
		return ForArray
	case !r.first:
		r.first = true
		return ForResources
	}
	return ForPriority
}

// fail says how a failed task failed.
func (j *Job) fail(t Task) {
	switch t.Cause {
	case "memory":
		j.State, j.Reason, j.Exit = OutOfMem, OutOfMemory, notation.ExitCode{Signal: 125} // as Slurm has it
	case "time":
		j.State, j.Reason, j.Exit = Timeout, TimeLimit, notation.ExitCode{Signal: 15}
	case "lost-worker":
		j.State, j.Reason, j.Exit = NodeFail, NodeDown, notation.ExitCode{}
	case "never":
		if !j.Spec.KillOrphan { // it stays where people look for what waits
			j.State, j.Reason, j.Exit = Pending, NeverSatisfied, notation.ExitCode{}
			j.Node, j.Times.Started, j.Times.Ended = "", time.Time{}, time.Time{}
			return
		}
		j.State, j.Exit = Cancelled, notation.ExitCode{}
	case "withdrawn":
		j.State, j.Exit = Cancelled, notation.ExitCode{}
		if t.Begun > 0 { // it was asked to end
			j.Exit.Signal = 15
		}
	default:
		j.State, j.Reason = Failed, NonZeroExit
		if j.Exit.Status == 0 {
			j.Reason = LaunchFailure // a signal, or it could not be started
		}
		if j.Exit == (notation.ExitCode{}) {
			j.Exit.Status = 1 // it failed, and no program has said so
		}
	}
}

// arrayTask is the number of an element of an array.
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

// attribute is the one of a task in which a Spec is. All of it is one text, since a list of jobs has it ten thousand
// times: to read that many maps takes longer than all else that squeue does.
const attribute = "slurm"

// The parts of a Spec, in the order in which they are written. New ones go to the end of their kind's list, behind which
// there is room: what an earlier release has written stays readable.
var (
	texts = []func(*Spec) *string{
		func(s *Spec) *string { return &s.User.Name }, func(s *Spec) *string { return &s.User.Group },
		func(s *Spec) *string { return &s.Partition }, func(s *Spec) *string { return &s.Account },
		func(s *Spec) *string { return &s.Comment }, func(s *Spec) *string { return &s.QOS },
		func(s *Spec) *string { return &s.Command.Line }, func(s *Spec) *string { return &s.Command.Host },
		func(s *Spec) *string { return &s.Command.Submit }, func(s *Spec) *string { return &s.Files.Directory },
		func(s *Spec) *string { return &s.Files.Input }, func(s *Spec) *string { return &s.Files.Output },
		func(s *Spec) *string { return &s.Files.Error }, func(s *Spec) *string { return &s.Array },
		func(s *Spec) *string { return &s.Dependency },
	}
	numbers = []func(*Spec) *int{
		func(s *Spec) *int { return &s.User.UID }, func(s *Spec) *int { return &s.User.GID },
		func(s *Spec) *int { return &s.Size.CPUs }, func(s *Spec) *int { return &s.Size.Tasks },
		func(s *Spec) *int { return &s.Size.CPUsPerTask }, func(s *Spec) *int { return &s.Size.GPUs },
		func(s *Spec) *int { return &s.Nice },
	}
	flags = []func(*Spec) *bool{
		func(s *Spec) *bool { return &s.Size.MemoryEach }, func(s *Spec) *bool { return &s.Requeue },
		func(s *Spec) *bool { return &s.KillOrphan },
	}
)

// kinds is how many texts, numbers and flags there may be.
const kinds = 24

// hide and unhide keep a text from looking like several fields.
var (
	hide   = strings.NewReplacer(`\`, `\\`, "\t", `\t`)
	unhide = strings.NewReplacer(`\\`, `\`, `\t`, "\t")
)

// Attributes writes a Spec as attributes of a task.
func (s *Spec) Attributes() map[string]string {
	fields := make([]string, 3*kinds+2)
	for i, of := range texts {
		fields[i] = hide.Replace(*of(s))
	}
	for i, of := range numbers {
		if n := *of(s); n != 0 {
			fields[kinds+i] = strconv.Itoa(n)
		}
	}
	for i, of := range flags {
		if *of(s) {
			fields[2*kinds+i] = "true"
		}
	}
	fields[3*kinds] = strconv.FormatInt(s.Size.MemoryMiB, 10)
	fields[3*kinds+1] = s.TimeLimit.String()
	return map[string]string{attribute: strings.Join(fields, "\t")}
}

// ParseSpec reads what Attributes writes. What it cannot read is zero: people may add tasks to a shim's run by
// themselves, and want to see them.
func ParseSpec(attributes map[string]string) *Spec {
	s := &Spec{}
	fields := strings.Split(attributes[attribute], "\t")
	if len(fields) != 3*kinds+2 {
		return s
	}
	for i, of := range texts {
		*of(s) = fields[i]
		if strings.Contains(fields[i], `\`) {
			*of(s) = unhide.Replace(fields[i])
		}
	}
	for i, of := range numbers {
		if text := fields[kinds+i]; text != "" {
			*of(s), _ = strconv.Atoi(text)
		}
	}
	for i, of := range flags {
		*of(s) = fields[2*kinds+i] == "true"
	}
	s.Size.MemoryMiB, _ = strconv.ParseInt(fields[3*kinds], 10, 64)
	s.TimeLimit, _ = time.ParseDuration(fields[3*kinds+1])
	return s
}
