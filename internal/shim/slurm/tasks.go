package slurm

// Jobs are tasks, and this is how one becomes the other: a job's number is its task's and the folder's base, an array
// is as many tasks in a row with one set of attributes, its number is that of the first. So the jobs that a command
// names are numbers of tasks, and only these are asked for.

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

// tasks asks for tasks of the folder's run.
func (c *call) tasks(q api.TaskQuery) ([]api.Task, error) {
	return untilAnswered(c, func() ([]api.Task, error) { return c.client.QueryTasks(c.ctx, c.folder.Run, q) })
}

// jobs asks for tasks, as jobs.
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

// shown is a task in the words of package job.
func (f Folder) shown(t api.Task) job.Task {
	return job.Task{
		ID: int(f.Base()) + t.Number, Element: t.Element, Name: t.Name, State: t.State, Cause: t.Cause,
		Exit: exitOf(t), Worker: node(t.Worker), Begun: t.Attempts, Attributes: t.Attributes,
		Times: job.Times{Submitted: t.AddedAt.Local(), Started: t.StartedAt.Local(), Ended: over(t)},
	}
}

// over is when a task was over in any way.
func over(t api.Task) time.Time {
	if !t.OverAt.IsZero() {
		return t.OverAt.Local()
	}
	return t.EndedAt.Local()
}

// node is the name of a worker as a node of Slurm: names of nodes have no dots and no slashes.
func node(worker string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r == ' ' || r == ',' || r == '[' || r == ']' {
			return '-'
		}
		return r
	}, worker)
}

// killedBy begins the reason of a task that a signal ended.
const killedBy = "killed by "

// exitOf says how a task's process ended, as far as its worker has told. What Slurm makes of that package job says.
func exitOf(t api.Task) (code notation.ExitCode) {
	// Of a process that a signal ended, the worker tells which one in its reason, and no status.
	if t.ExitStatus != nil && *t.ExitStatus >= 0 {
		code.Status = *t.ExitStatus // also of one that caught the signal by which it was to end
		return code
	}
	if name, ok := strings.CutPrefix(t.Reason, killedBy); ok {
		code.Signal, _ = notation.ParseSignal(strings.TrimPrefix(name, "signal "))
	}
	// A worker that kills what is withdrawn tells no more. Slurm sends SIGTERM, and that is what clients know.
	if t.Cause == corral.CauseWithdrawn && t.Attempts > 0 {
		code.Signal = int(syscall.SIGTERM)
	}
	return code
}

// numberOf is the number of the task that a job is, ok only for one that this folder may have.
func (f Folder) numberOf(id int) (number int, ok bool) {
	number = id - int(f.Base())
	return number, number > 0 && number < numbersPerRun
}

// living are the states of tasks that are not over.
var living = []corral.TaskState{corral.TaskWaiting, corral.TaskReady, corral.TaskRunning}

// expand returns the jobs that each word of a list means: none where there is no such job.
func (c *call) expand(list []notation.JobID) ([][]job.Job, error) {
	var numbers []int
	for _, id := range list {
		if n, ok := c.folder.numberOf(id.Job); ok {
			numbers = append(numbers, n)
		}
	}
	// The first look tells single jobs, and of arrays the first task, in which the others are written. A second one
	// asks for all of these.
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

// byID finds a job among others that are in the order of their numbers, as tasks come.
func byID(j job.Job, id int) int { return cmp.Compare(j.ID, id) }

// members returns the ids of the jobs that each word of a list means. firsts has those with the numbers of the list
// that there are: a word means that job alone, or tasks of its array. arrays: there are some.
func members(firsts []job.Job, list []notation.JobID) (meant [][]int, arrays bool, err error) {
	// Which tasks an array has is written in each of them: no further question is needed.
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
			if array == nil { // attributes that no sbatch has written
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

// waits returns what a job waits for.
func (c *call) waits(sub *submission.Submission) (waits []api.Wait, err error) {
	for _, d := range sub.Placing.Dependencies.List {
		// Of jobs that are submitted at the same time one may miss the other, as each asks before it is there itself.
		if d.When == notation.Singleton {
			earlier, err := c.jobs(api.TaskQuery{States: living})
			if err != nil {
				return nil, err
			}
			for _, j := range earlier {
				if j.Name == sub.Name {
					waits = append(waits, api.Wait{Task: j.ID - int(c.folder.Base()), When: api.WhenEnded})
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
				waits = append(waits, api.Wait{Task: j.ID - int(c.folder.Base()), When: whens[d.When]})
			}
		}
	}
	return waits, nil
}

// whens are what a dependency waits for, in the words of corrald.
var whens = map[notation.DependencyKind]api.When{
	notation.After: api.WhenStarted, notation.AfterAny: api.WhenEnded, notation.AfterOK: api.WhenSucceeded,
	notation.AfterNotOK: api.WhenFailed,
}
