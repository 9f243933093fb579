package slurm

// sbatch processes a job in this order: its command line, the environment and the script are parsed and checked
// (package submission); the result becomes an order for the worker, and a Spec for commands that list jobs;
// dependencies are resolved; the workers check whether they see the job's directory, once for each file system. Only
// then is a task created. So errors in a job are reported before any part of the job exists. The single request that
// creates the job contains a key: if corrald is killed before it can answer and the request is repeated, no second job
// is created.

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/job"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
	"github.com/corral-pilot/corral/internal/shim/slurm/submission"
)

// sbatch submits a job to corrald. All errors that can be detected are reported before the submission.
func sbatch(c *call) error {
	sub, err := c.read()
	if err != nil {
		return err
	}
	if err := openOf(c, sub.Placing.Clusters); err != nil {
		return err
	}
	t, err := c.task(sub)
	if err != nil {
		return submission.Failed(err)
	}
	if sub.Answer.TestOnly {
		fmt.Fprintf(c.Err, "sbatch: Job to start when a worker of cluster %s has room, with %d cpus in partition %s\n",
			c.folder.Cluster, sub.Size.CPUs, c.folder.Cluster)
		return nil
	}
	// A repeated request creates the same job. The key is not saved: if sbatch is killed, it is unknown whether the job
	// was created, as in Slurm.
	key := rand.Text()
	added, err := untilAnswered(c, func() (api.AddedTasks, error) {
		return c.client.AddTask(c.ctx, c.folder.Run, t, key)
	})
	if err != nil {
		return submission.Failed(err)
	}
	id := c.folder.Base() + int64(added.First)
	// If a cluster was named, the output names the cluster that took the job.
	on, semicolon := "", ""
	if c.title != "" {
		on, semicolon = " on cluster "+c.title, ";"+c.title
	}
	switch {
	case sub.Answer.Parsable:
		fmt.Fprintf(c.Out, "%d%s\n", id, semicolon)
	case !sub.Answer.Quiet:
		fmt.Fprintf(c.Out, "Submitted batch job %d%s\n", id, on)
	}
	if !sub.Answer.Wait {
		return nil
	}
	return c.await(added)
}

// read parses the options of sbatch: its command line, the environment, and the script.
func (c *call) read() (*submission.Submission, error) {
	cmd, err := submission.ParseCommand(c.args)
	switch {
	case err != nil:
		return nil, err
	case cmd.Help:
		return nil, c.tellOther("help")
	case cmd.Version:
		return nil, c.tellOther("version")
	}
	script := ""
	if cmd.Wrap == nil {
		if script, err = c.script(cmd.Path); err != nil {
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
	return cmd.Submission(submission.Caller{Environ: os.Environ(), Directory: dir, Umask: mask}, script)
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
	b, err := input.ReadAll(from, submission.MaxScript)
	if _, long := errors.AsType[*input.TooLongError](err); long {
		return "", submission.ErrTooLong
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
func (c *call) task(sub *submission.Submission) (t api.NewTask, err error) {
	who := whoever()
	// Clients that read the cluster's name from sinfo specify it as the partition. "default" is used by clients that
	// require a partition.
	if p := sub.Labels.Partition; p != "" && p != c.folder.Cluster && p != "default" {
		return t, errors.New("Invalid partition name specified") // Slurm's wording
	}
	o, err := c.order(sub, who)
	if err != nil {
		return t, err
	}
	note, err := o.Encode()
	if err != nil {
		return t, err
	}
	after, err := c.waits(sub)
	if err != nil {
		return t, err
	}
	if !sub.Answer.TestOnly { // a test creates nothing
		if err := c.sight(o); err != nil {
			return t, err
		}
	}
	t = api.NewTask{
		Name: sub.Name, Argv: []string{corral.PilotProgram, step.Command}, Note: string(note),
		TaskTimes: api.TaskTimes{TimeLimit: corral.Seconds(sub.Limits.Time), Grace: corral.Seconds(killWait)},
		Requeue:   sub.Limits.Requeue,
		Priority:  max(-api.MaxPriority, min(api.MaxPriority, -sub.Placing.Nice)), // Slurm has a wider range
		Resources: resources(sub), After: after,
	}
	// All tasks of an array share one order: the worker passes each step the index of its element.
	if sub.Array != nil {
		t.Elements, t.AtOnce = len(sub.Array.Tasks), sub.Array.AtOnce
	}
	spec := c.spec(sub, who)
	t.Attributes = spec.Attributes()
	return t, nil
}

// killWait is the time that a job has to clean up when it must end: Slurm's default.
const killWait = 30 * time.Second

// resources returns the resources that a job requests from a worker.
func resources(sub *submission.Submission) corral.Resources {
	// 0 means that no memory was requested: the job then receives a share of its worker's memory in proportion to its
	// CPUs.
	s := sub.Size
	return corral.Resources{CPUs: s.CPUs, MemoryMiB: int(s.Total()), DiskMiB: int(sub.DiskMiB), GPUs: s.GPUs}
}

// whoever returns the calling user.
func whoever() job.User {
	me := job.User{UID: os.Getuid(), GID: os.Getgid()}
	// A static program reads only /etc/passwd, which does not contain the users of a directory service.
	me.Name, me.Group = os.Getenv("USER"), strconv.Itoa(me.GID)
	if u, err := user.Current(); err == nil {
		me.Name = u.Username
	}
	if g, err := user.LookupGroupId(me.Group); err == nil {
		me.Group = g.Name
	}
	me.Name = cmp.Or(me.Name, strconv.Itoa(me.UID))
	return me
}

// order returns the order for the job's worker.
func (c *call) order(sub *submission.Submission, who job.User) (o step.Order, err error) {
	o = step.Order{
		Script: step.Script{Text: sub.Script, Name: sub.Path, Args: sub.Args}, Environment: sub.Environment.Variables,
		Streams: step.Streams{
			Input: sub.Stdio.Input, Output: sub.Stdio.Output, Error: sub.Stdio.Error, Append: sub.Stdio.Append,
		},
		Limits: step.Limits{Umask: sub.Limits.Umask, Time: sub.Limits.Time, Warning: sub.Limits.Signal},
		Facts: step.Facts{
			Name: sub.Name, User: who.Name, UID: who.UID, Account: sub.Labels.Account, Cluster: c.folder.Cluster,
			Partition: c.folder.Cluster, Size: sub.Size, Export: sub.Environment.Export,
		},
		Folder: c.folder.Path, Base: c.folder.Base(),
	}
	if sub.Array != nil {
		o.Array = sub.Array.Text
	}
	if o.Place.Submitted, err = os.Getwd(); err != nil {
		return o, fmt.Errorf("finding the working directory: %w", err)
	}
	if o.Place.Host, err = os.Hostname(); err != nil {
		return o, fmt.Errorf("finding this machine's name: %w", err)
	}
	o.Place.Directory = sub.Directory
	// The order includes the directory's inode number, with which a worker distinguishes it from another directory of
	// the same name.
	if o.Place.Mark = step.MarkOf(sub.Directory); o.Place.Mark == 0 {
		return o, fmt.Errorf("the job's directory %s does not exist or is not a directory", sub.Directory)
	}
	o.Limits.Soft, err = softLimits(sub.Limits.Rlimits)
	return o, err
}

// softLimits returns the calling shell's limits for the given resources, because this process has raised some of its
// own limits.
func softLimits(names []string) (map[string]uint64, error) {
	// Go's runtime raises the limit of open files at startup, and does not provide the previous value.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", os.Getppid()))
	if err != nil {
		if text, err = os.ReadFile("/proc/self/limits"); err != nil {
			return nil, fmt.Errorf("reading this process's limits: %w", err)
		}
	}
	all, soft := step.SoftLimits(text), map[string]uint64{}
	for _, name := range names {
		if limit, ok := all[name]; ok {
			soft[name] = limit
		}
	}
	return soft, nil
}

// shortened truncates a command line for display. Each list of jobs contains the command line, and some command lines
// contain a whole program.
func shortened(line string) string {
	const most = 2000
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// spec returns the displayed data of the job.
func (c *call) spec(sub *submission.Submission, who job.User) job.Spec {
	// File names remain patterns: each task of an array has its own files.
	at := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(sub.Directory, name)
	}
	command := ""
	if sub.Path != "" {
		path, err := filepath.Abs(sub.Path)
		if err != nil {
			path = sub.Path
		}
		command = strings.Join(append([]string{path}, sub.Args...), " ")
	}
	host, _ := os.Hostname() // order has already found it
	s := job.Spec{
		User: who, Partition: c.folder.Cluster, Account: sub.Labels.Account,
		Comment: sub.Labels.Comment, QOS: sub.Labels.QOS,
		Command: job.Command{Line: shortened(command), Host: host,
			Submit: shortened(strings.Join(append([]string{"sbatch"}, c.args...), " "))},
		Files: job.Files{Directory: sub.Directory,
			Input: at(sub.Stdio.Input), Output: at(sub.Stdio.Output), Error: at(sub.Stdio.Error)},
		Size: sub.Size, TimeLimit: sub.Limits.Time, Requeue: sub.Limits.Requeue, Nice: sub.Placing.Nice,
		KillOrphan: sub.Placing.KillInvalid,
		Dependency: sub.Placing.Dependencies.Text("", func(int) bool { return false }), // arrays look like jobs
	}
	if sub.Array != nil {
		s.Array = sub.Array.Text
	}
	return s
}
