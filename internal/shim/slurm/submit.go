package slurm

// A job goes through sbatch in this order: its words, the environment and the script are read and checked (package
// submission); what Slurm would make of them becomes an order for the worker, and a Spec for who lists jobs; what it
// waits for is looked up; whether workers see its directory is asked, once for each file system. Only then is there a
// task. So whatever is wrong with a job is said while nothing of it exists, and the one request that makes it carries a
// key: sent again, after corrald was killed before it could answer, it makes no second job.

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

// sbatch hands a job to corrald. All that can be wrong with it is found out before.
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
	// Asked again, it is the same job. The key is not kept: who kills sbatch does not know, as with Slurm, whether
	// there is a job now.
	key := rand.Text()
	added, err := untilAnswered(c, func() (api.AddedTasks, error) {
		return c.client.AddTask(c.ctx, c.folder.Run, t, key)
	})
	if err != nil {
		return submission.Failed(err)
	}
	id := c.folder.Base() + int64(added.First)
	// Who has named a cluster is told which one took the job.
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

// read reads what sbatch is asked: its words, the environment, and the script.
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
	// There is no other way to ask for the mask. Nothing else of this process makes files meanwhile.
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return cmd.Submission(submission.Caller{Environ: os.Environ(), Directory: dir, Umask: mask}, script)
}

// script reads the script of a name, or standard input. It may be a pipe.
func (c *call) script(name string) (string, error) {
	// More than a script may have is never read, however much there is.
	from := c.In
	if name != "" {
		f, err := os.Open(name)
		if err != nil && !strings.Contains(name, "/") { // as Slurm has it, then it may be a command
			if found, errPath := exec.LookPath(name); errPath == nil {
				f, err = os.Open(found)
			}
		}
		if err != nil {
			return "", fmt.Errorf("Unable to open file %s", name) // Slurm's words
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

// await waits for jobs and ends with the highest of their exit statuses, as sbatch --wait does; that of one which was
// killed is 1.
func (c *call) await(added api.AddedTasks) error {
	tasks, err := untilAnswered(c, func() ([]api.Task, error) {
		return c.client.WaitTasks(c.ctx, c.folder.Run, added.Numbers(), 0)
	})
	if err != nil {
		return err
	}
	// An array has as many ends as tasks. What could not be begun has left nothing in its output that says why.
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

// task makes the task of a submission.
func (c *call) task(sub *submission.Submission) (t api.NewTask, err error) {
	who := whoever()
	// Clients that know the cluster by sinfo name it as their partition. "default" is what people write where they must
	// write something.
	if p := sub.Labels.Partition; p != "" && p != c.folder.Cluster && p != "default" {
		return t, errors.New("Invalid partition name specified") // Slurm's words
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
	if !sub.Answer.TestOnly { // which makes nothing
		if err := c.sight(o); err != nil {
			return t, err
		}
	}
	t = api.NewTask{
		Name: sub.Name, Argv: []string{corral.PilotProgram, step.Command}, Note: string(note),
		TaskTimes: api.TaskTimes{TimeLimit: corral.Seconds(sub.Limits.Time), Grace: corral.Seconds(killWait)},
		Requeue:   sub.Limits.Requeue,
		Priority:  max(-api.MaxPriority, min(api.MaxPriority, -sub.Placing.Nice)), // Slurm has a longer scale
		Resources: resources(sub), After: after,
	}
	// All tasks of an array share one order: which of them it is, a step knows from its worker.
	if sub.Array != nil {
		t.Elements, t.AtOnce = len(sub.Array.Tasks), sub.Array.AtOnce
	}
	spec := c.spec(sub, who)
	t.Attributes = spec.Attributes()
	return t, nil
}

// killWait is how long a job has to tidy up when it is to end, as with a Slurm whose configuration says nothing of it.
const killWait = 30 * time.Second

// resources is what a job asks of a worker.
func resources(sub *submission.Submission) corral.Resources {
	// 0 means that nothing was asked for: the job then gets the share of its worker's memory that its cpus are.
	s := sub.Size
	return corral.Resources{CPUs: s.CPUs, MemoryMiB: int(s.Total()), DiskMiB: int(sub.DiskMiB), GPUs: s.GPUs}
}

// whoever returns the user who calls.
func whoever() job.User {
	me := job.User{UID: os.Getuid(), GID: os.Getgid()}
	// A user of a directory service is not in /etc/passwd, which is all that a static program reads.
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

// order is what the job's worker is told.
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
	// The number of the directory goes along, by which a worker tells it from one of the same name.
	if o.Place.Mark = step.MarkOf(sub.Directory); o.Place.Mark == 0 {
		return o, fmt.Errorf("the job's directory %s is not there, or no directory", sub.Directory)
	}
	o.Limits.Soft, err = softLimits(sub.Limits.Rlimits)
	return o, err
}

// softLimits returns those limits of the calling shell that a job is to have: this process has raised some of its own.
func softLimits(names []string) (map[string]uint64, error) {
	// Go raises the limit of open files for itself when a program begins, and does not tell what it was.
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

// shortened cuts a command line that is shown. Each list of jobs has it in it, and some have a whole program in them.
func shortened(line string) string {
	const most = 2000
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// spec is what is shown of the job.
func (c *call) spec(sub *submission.Submission, who job.User) job.Spec {
	// Names stay patterns: each task of an array has files of its own.
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
	host, _ := os.Hostname() // order has found it
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
