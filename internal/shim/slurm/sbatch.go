package slurm

// sbatch processes a job in this order: its command line, the environment and the script are parsed and checked
// (submission.go), which results in an order for the worker and a spec for commands that list jobs; dependencies are
// resolved; the workers check whether they see the job's directory, once for each file system. Only then is a task
// created. So errors in a job are reported before any part of the job exists. The single request that creates the job
// contains a key: if corrald is killed before it can answer and the request is repeated, no second job is created.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// sbatch submits a job to corrald. All errors that can be detected are reported before the submission.
func sbatch(c *call) error {
	sub, err := c.read()
	if err != nil {
		return err
	}
	if err := openOf(c, sub.clusters); err != nil {
		return err
	}
	t, err := c.task(sub)
	if err != nil {
		return submitFailed(err)
	}
	if sub.testOnly {
		fmt.Fprintf(c.Err, "sbatch: Job to start when a worker of cluster %s has room, with %d cpus in partition %s\n",
			c.folder.Cluster, sub.spec.Size.CPUs, c.folder.Cluster)
		return nil
	}
	// A repeated request creates the same job. The key is not saved: if sbatch is killed, it is unknown whether the job
	// was created, as in Slurm.
	key := rand.Text()
	added, err := untilAnswered(c, func() (api.AddedTasks, error) {
		return c.client.AddTask(c.ctx, c.folder.Run, t, key)
	})
	if err != nil {
		return submitFailed(err)
	}
	id := c.folder.Base() + int64(added.First)
	// If a cluster was named, the output names the cluster that took the job.
	on, semicolon := "", ""
	if c.title != "" {
		on, semicolon = " on cluster "+c.title, ";"+c.title
	}
	switch {
	case sub.parsable:
		fmt.Fprintf(c.Out, "%d%s\n", id, semicolon)
	case !sub.quiet:
		fmt.Fprintf(c.Out, "Submitted batch job %d%s\n", id, on)
	}
	if !sub.wait {
		return nil
	}
	return c.await(added)
}

// read parses the options of sbatch: its command line, the environment, and the script.
func (c *call) read() (*submission, error) {
	sub, err := parseSbatch(c.args)
	switch {
	case err != nil:
		return nil, err
	case sub.help:
		return nil, c.tellOther("help")
	case sub.version:
		return nil, c.tellOther("version")
	}
	script := ""
	if sub.wrap == nil {
		if script, err = c.script(sub.order.Script.Name); err != nil {
			return nil, err
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	// The mask can be read only by setting it. No other code in this process creates files at this time.
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return sub.complete(caller{environ: os.Environ(), directory: dir, umask: mask}, script)
}

// script reads a script by name, or from standard input. The file may be a pipe.
func (c *call) script(name string) (string, error) {
	// More than the maximum length of a script is never read.
	from := c.In
	if name != "" {
		f, err := os.Open(name)
		if err != nil && !strings.Contains(name, "/") { // as in Slurm, it may then be a command
			if found, errPath := exec.LookPath(name); errPath == nil {
				f, err = os.Open(found)
			}
		}
		if err != nil {
			return "", fmt.Errorf("Unable to open file %s", name) // Slurm's wording
		}
		defer f.Close()
		from = f
	}
	b, err := input.ReadAll(from, maxScript)
	if _, long := errors.AsType[*input.TooLongError](err); long {
		return "", errTooLong
	}
	return string(b), err
}

// await waits for jobs and returns the highest of their exit statuses, like sbatch --wait; the status of a killed job
// counts as 1.
func (c *call) await(added api.AddedTasks) error {
	tasks, err := untilAnswered(c, func() ([]api.TaskStatus, error) {
		return c.client.WaitTasks(c.ctx, c.folder.Run, added.Numbers(), 0)
	})
	if err != nil {
		return err
	}
	// Each task of an array has its own status. The output of a task that could not be started does not contain the
	// reason.
	worst := 0
	for _, t := range tasks {
		if unable(t) {
			fmt.Fprintln(c.Err, notation.Message(c.name, c.reason(t)))
		}
		code := exitOf(t)
		worst = max(worst, code.Status)
		if t.State != corral.TaskDone {
			worst = max(worst, 1)
		}
	}
	if worst > 0 {
		return exit(worst)
	}
	return nil
}

// task returns the task for a submission.
func (c *call) task(sub *submission) (t api.NewTask, err error) {
	// Clients that read the cluster's name from sinfo specify it as the partition. "default" is used by clients that
	// require a partition.
	if p := sub.partition; p != "" && p != c.folder.Cluster && p != "default" {
		return t, errors.New("Invalid partition name specified") // Slurm's wording
	}
	if err := c.place(sub); err != nil {
		return t, err
	}
	note, err := sub.order.Encode()
	if err != nil {
		return t, err
	}
	after, err := c.waits(sub)
	if err != nil {
		return t, err
	}
	if !sub.testOnly { // a test creates nothing
		if err := c.sight(sub.order); err != nil {
			return t, err
		}
	}
	size := sub.spec.Size
	t = api.NewTask{
		Name: sub.order.Facts.Name, Argv: []string{corral.PilotProgram, step.Command}, Note: string(note),
		TaskTimes: api.TaskTimes{TimeLimit: sub.spec.TimeLimit, Grace: corral.Seconds(killWait)},
		Requeue:   sub.spec.Requeue,
		Priority:  max(-api.MaxPriority, min(api.MaxPriority, -sub.spec.Nice)), // Slurm has a wider range
		// 0 means that no memory was requested: the job then receives a share of its worker's memory in proportion to
		// its CPUs.
		Resources: corral.Resources{
			CPUs: size.CPUs, MemoryMiB: int(size.Total()), DiskMiB: int(sub.diskMiB), GPUs: size.GPUs,
		},
		After: after,
	}
	// All tasks of an array share one order: the worker passes each step the index of its element.
	if sub.array != nil {
		t.Elements, t.AtOnce = len(sub.array.Tasks), sub.array.AtOnce
	}
	t.Attributes, err = sub.spec.attributes()
	return t, err
}

// killWait is the time that a job has to clean up when it must end: Slurm's default.
const killWait = 30 * time.Second

// place adds to a submission the properties of this process, its user, and the folder.
func (c *call) place(sub *submission) (err error) {
	o, show, who := &sub.order, &sub.spec, currentUser()
	o.Folder, o.Base = c.folder.Path, c.folder.Base()
	o.Facts.User, o.Facts.UID = who.Name, who.UID
	o.Facts.Cluster, o.Facts.Partition = c.folder.Cluster, c.folder.Cluster
	if o.Place.Submitted, err = os.Getwd(); err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if o.Place.Host, err = os.Hostname(); err != nil {
		return fmt.Errorf("finding this machine's name: %w", err)
	}
	// The order includes the directory's inode number, with which a worker distinguishes it from another directory of
	// the same name.
	if o.Place.Mark = step.MarkOf(o.Place.Directory); o.Place.Mark == 0 {
		return fmt.Errorf("the job's directory %s does not exist or is not a directory", o.Place.Directory)
	}
	show.User, show.Host, show.Partition = who, o.Place.Host, c.folder.Cluster
	show.Submit = shortened(append([]string{"sbatch"}, c.args...))
	if o.Script.Name != "" {
		path := absolute(o.Place.Submitted, o.Script.Name)
		show.Command = shortened(append([]string{path}, o.Script.Args...))
	}
	// Go's runtime raises this process's limit of open files at startup, and does not provide the previous value: the
	// calling shell has it.
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", os.Getppid()))
	if err != nil {
		if limits, err = os.ReadFile("/proc/self/limits"); err != nil {
			return fmt.Errorf("reading this process's limits: %w", err)
		}
	}
	o.Limits.Soft = step.SoftLimits(limits, sub.rlimits)
	return nil
}

// shortened formats a command line for display. Each list of jobs contains it, and some command lines contain a whole
// program.
func shortened(words []string) string {
	const most = 2000
	line := strings.Join(words, " ")
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// waits returns the conditions that a job waits for.
func (c *call) waits(sub *submission) (waits []api.Condition, err error) {
	add := func(jobs []job, when api.When) {
		for _, j := range jobs {
			waits = append(waits, api.Condition{Task: j.ID - int(c.folder.Base()), When: when})
		}
	}
	for _, d := range sub.dependencies.List {
		// Jobs submitted together cannot wait for each other, because each is checked before any of them exists.
		if d.When == notation.Singleton {
			earlier, err := c.jobs(api.TaskQuery{
				States: []corral.TaskState{corral.TaskWaiting, corral.TaskReady, corral.TaskRunning},
			})
			if err != nil {
				return nil, err
			}
			other := func(j job) bool { return j.Name != sub.order.Facts.Name }
			add(slices.DeleteFunc(earlier, other), api.WhenEnded)
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
			add(jobs, whens[d.When])
		}
	}
	return waits, nil
}

// whens maps kinds of dependencies to corrald's conditions.
var whens = map[notation.DependencyKind]api.When{
	notation.After: api.WhenStarted, notation.AfterAny: api.WhenEnded, notation.AfterOK: api.WhenSucceeded,
	notation.AfterNotOK: api.WhenFailed,
}
