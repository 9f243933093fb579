package slurm

// Jobs are converted to tasks as follows: a job's number is its task's number plus the folder's base; an array is a
// series of tasks with the same attributes, and its number is that of its first task. So the jobs named in a command
// correspond to numbers of tasks, and only these are requested.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/job"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/submission"
)

// tasks requests tasks of the folder's run.
func (c *call) tasks(q api.TaskQuery) ([]api.TaskStatus, error) {
	return untilAnswered(c, func() ([]api.TaskStatus, error) { return c.client.QueryTasks(c.ctx, c.folder.Run, q) })
}

// jobs requests tasks, and converts them to jobs.
func (c *call) jobs(q api.TaskQuery) ([]job.Job, error) {
	tasks, err := c.tasks(q)
	if err != nil {
		return nil, err
	}
	var r job.Reader
	all := make([]job.Job, 0, len(tasks))
	for _, t := range tasks {
		if c.over && !t.State.Over() { // the run was cancelled
			t.State, t.Cause = corral.TaskFailed, corral.CauseWithdrawn
		}
		if t.Grown != nil && len(t.Attributes) > 0 { // others are probes
			all = append(all, r.Job(c.folder.shown(t)))
		}
	}
	return all, nil
}

// shown converts a task for package job.
func (f Folder) shown(t api.TaskStatus) job.Task {
	return job.Task{
		ID: int(f.Base()) + t.Number, Element: t.Element, Name: t.Name, State: t.State, Cause: t.Cause,
		Exit: exitOf(t), Worker: node(t.Worker), Begun: t.Attempts, Attributes: t.Attributes,
		Times: job.Times{Submitted: t.AddedAt.Local(), Started: t.StartedAt.Local(), Ended: over(t)},
	}
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
		if r == '/' || r == '.' || r == ' ' || r == ',' || r == '[' || r == ']' {
			return '-'
		}
		return r
	}, worker)
}

// killedBy is the prefix of the reason for a task that was ended by a signal.
const killedBy = "killed by "

// exitOf returns the status or signal with which a task's process ended, as far as its worker has reported it. Package
// job interprets it as Slurm would.
func exitOf(t api.TaskStatus) (code notation.ExitCode) {
	// For a process that was ended by a signal, the worker names the signal in the reason, and reports no status.
	if t.ExitStatus != nil && *t.ExitStatus >= 0 {
		code.Status = *t.ExitStatus // also for a process that handled the signal that asked it to end
		return code
	}
	if name, ok := strings.CutPrefix(t.Reason, killedBy); ok {
		code.Signal, _ = notation.ParseSignal(strings.TrimPrefix(name, "signal "))
	}
	// A worker that kills a withdrawn task reports nothing more. Slurm sends SIGTERM, which clients expect.
	if t.Cause == corral.CauseWithdrawn && t.Attempts > 0 {
		code.Signal = int(syscall.SIGTERM)
	}
	return code
}

// numberOf returns the number of a job's task; ok is false if the job cannot belong to this folder.
func (f Folder) numberOf(id int) (number int, ok bool) {
	number = id - int(f.Base())
	return number, number > 0 && number < numbersPerRun
}

// living are the states of tasks that have not ended.
var living = []corral.TaskState{corral.TaskWaiting, corral.TaskReady, corral.TaskRunning}

// expand returns the jobs for each entry of a list: an empty list if the entry matches no job.
func (c *call) expand(list []notation.JobID) ([][]job.Job, error) {
	var numbers []int
	for _, id := range list {
		if n, ok := c.folder.numberOf(id.Job); ok {
			numbers = append(numbers, n)
		}
	}
	// The first request returns single jobs, and the first task of each array, which names the array's other tasks. A
	// second request fetches all tasks of these arrays.
	found := make([][]job.Job, len(list))
	if len(numbers) == 0 {
		return found, nil
	}
	jobs, err := c.jobs(api.TaskQuery{Numbers: numbers})
	if err != nil {
		return nil, err
	}
	meant, arrays, err := members(jobs, list)
	if err == nil && arrays {
		numbers = nil
		for _, id := range slices.Concat(meant...) {
			numbers = append(numbers, id-int(c.folder.Base()))
		}
		if len(numbers) > 0 {
			jobs, err = c.jobs(api.TaskQuery{Numbers: numbers})
		}
	}
	if err != nil {
		return nil, err
	}
	for i, ids := range meant {
		for _, id := range ids {
			if at, ok := slices.BinarySearchFunc(jobs, id, byID); ok {
				found[i] = append(found[i], jobs[at])
			}
		}
	}
	return found, nil
}

// byID compares a job with an id, for searching jobs that are sorted by id, as tasks are.
func byID(j job.Job, id int) int { return cmp.Compare(j.ID, id) }

// members returns the ids of the jobs for each entry of a list. firsts contains the existing jobs with the numbers in
// the list: an entry refers to that job alone, or to tasks of its array. arrays reports whether the list refers to any
// arrays.
func members(firsts []job.Job, list []notation.JobID) (meant [][]int, arrays bool, err error) {
	// Each task names all tasks of its array: no further request is needed.
	known := map[string]*notation.Array{}
	meant = make([][]int, len(list))
	for i, id := range list {
		at, ok := slices.BinarySearchFunc(firsts, id.Job, byID)
		if !ok {
			continue
		}
		first := &firsts[at]
		if first.ArrayID == 0 || first.ArrayID != first.ID {
			if id.Tasks == nil {
				meant[i] = []int{first.ID}
			}
			continue
		}
		array := known[first.Spec.Array]
		if array == nil {
			if array, err = notation.ParseArray(first.Spec.Array, notation.MaxTask); err != nil {
				return nil, false, fmt.Errorf("reading the array of job %d: %w", first.ID, err)
			}
			if array == nil { // attributes that sbatch has not written
				array = &notation.Array{}
			}
			known[first.Spec.Array] = array
		}
		arrays = true
		wanted := id.Tasks
		if wanted == nil {
			wanted = array.Tasks
		}
		for _, n := range wanted {
			if element, ok := slices.BinarySearch(array.Tasks, n); ok {
				meant[i] = append(meant[i], first.ID+element)
			}
		}
	}
	return meant, arrays, nil
}

// waits returns the conditions that a job waits for.
func (c *call) waits(sub *submission.Submission) (waits []api.Condition, err error) {
	for _, d := range sub.Placing.Dependencies.List {
		// Jobs submitted at the same time may not wait for each other, because each is checked before it exists itself.
		if d.When == notation.Singleton {
			earlier, err := c.jobs(api.TaskQuery{States: living})
			if err != nil {
				return nil, err
			}
			for _, j := range earlier {
				if j.Name == sub.Name {
					waits = append(waits, api.Condition{Task: j.ID - int(c.folder.Base()), When: api.WhenEnded})
				}
			}
			continue
		}
		found, err := c.expand(d.Jobs)
		if err != nil {
			return nil, err
		}
		for _, jobs := range found {
			if len(jobs) == 0 {
				return nil, notation.ErrDependency
			}
			for _, j := range jobs {
				waits = append(waits, api.Condition{Task: j.ID - int(c.folder.Base()), When: whens[d.When]})
			}
		}
	}
	return waits, nil
}

// whens maps kinds of dependencies to corrald's conditions.
var whens = map[notation.DependencyKind]api.When{
	notation.After: api.WhenStarted, notation.AfterAny: api.WhenEnded, notation.AfterOK: api.WhenSucceeded,
	notation.AfterNotOK: api.WhenFailed,
}
