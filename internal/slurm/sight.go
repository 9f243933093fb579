package slurm

// Whether workers see a directory is known only to them. Each step looks before it begins anything, and ends if its
// job's directory is not there or is another one. So nothing wrong can happen; but a thousand jobs would fail one by
// one where one sentence of sbatch would do. Therefore the first job on a file system has the workers look before it is
// made: as many tasks as there are workers, which come and go in milliseconds. What was seen once is not asked again:
// the note of it is the folder's, so that other shims ask for themselves.

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/input"
	"github.com/corral-pilot/corral/internal/slurm/step"
)

const (
	// seenNote is a folder's file with the file systems of which it was asked whether workers see them.
	seenNote = ".corral-seen"

	probeName = "probe"         // of the tasks that look
	probeWait = 3 * time.Second // for workers that may be busy
	mostProbe = 8               // workers that are asked
)

// sight refuses a job whose directory no worker sees, as far as that can be known: each step looks for itself. Of each
// file system of this machine the workers are asked once, by tasks of the run that begin nothing.
func (c *call) sight(o step.Order) error {
	system := fileSystem(o.Place)
	note := filepath.Join(c.folder.Path, seenNote)
	if known, _ := input.ReadFile(note, 64<<10); slices.Contains(strings.Split(string(known), "\n"), system) {
		return nil
	}
	workers, err := untilAnswered(c, func() ([]corral.Worker, error) {
		return c.client.Workers(c.ctx, c.folder.Cluster)
	})
	if err != nil || len(workers) == 0 || len(workers) > mostProbe {
		return err
	}
	tasks, err := c.probe(o, len(workers))
	if err != nil {
		return err
	}
	var blind []string
	for _, t := range tasks {
		if unable(t) {
			blind = append(blind, t.Worker)
		}
	}
	// One that sees it is enough, and so is one that was not asked: a job finds out by itself where it is.
	all := func(w corral.Worker) bool { return slices.Contains(blind, w.ID) }
	if len(blind) == len(tasks) && !slices.ContainsFunc(workers, func(w corral.Worker) bool { return !all(w) }) {
		return c.reason(tasks[0])
	}
	// Short lines that are appended are whole, whoever else appends.
	f, err := os.OpenFile(note, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil //nolint:nilerr // then they are asked again
	}
	defer f.Close()
	_, _ = fmt.Fprintln(f, system)
	return nil
}

// unable reports whether a step may have begun nothing of its job. A script can end with the same status.
func unable(t api.Task) bool {
	return t.State == corral.TaskFailed && t.ExitStatus != nil && *t.ExitStatus == step.ExitUnable
}

// fileSystem names the file system of a job's directory.
func fileSystem(p step.Place) string {
	var st syscall.Stat_t
	_ = syscall.Stat(p.Directory, &st) // it was there a moment ago
	return fmt.Sprintf("%s %x", p.Host, st.Dev)
}

// probe has n tasks look for a job's directory, and returns what became of them after a while.
func (c *call) probe(o step.Order, n int) ([]api.Task, error) {
	// It is the job's own order, so that a step looks for just what it would look for.
	o.Probe = true
	note, err := o.Encode()
	if err != nil {
		return nil, err
	}
	key := rand.Text()
	added, err := untilAnswered(c, func() (api.AddedTasks, error) {
		return c.client.AddTask(c.ctx, c.folder.Run, api.NewTask{
			Name: probeName, Argv: []string{api.PilotProgram, step.Command}, Note: string(note), Elements: n,
			Resources: corral.Resources{CPUs: 1}, Requeue: true,
		}, key)
	})
	if err != nil {
		return nil, err
	}
	var numbers []int
	var ids []string
	for i := range n {
		numbers, ids = append(numbers, added.First+i), append(ids, fmt.Sprint(added.First+i))
	}
	tasks, err := untilAnswered(c, func() ([]api.Task, error) {
		return c.client.WaitTasks(c.ctx, c.folder.Run, numbers, probeWait)
	})
	if corral.KindOf(err) == corral.Timeout { // they need not look any more: each job does
		_, err = untilAnswered(c, func() (corral.Run, error) {
			return c.client.CancelTasks(c.ctx, c.folder.Run, ids...)
		})
		if corral.KindOf(err) == corral.Conflict { // they are over by now
			err = nil
		}
	}
	return tasks, err
}

// reason is what a step said that could not begin its job.
func (c *call) reason(t api.Task) error {
	said, err := c.client.RunTaskLog(c.ctx, c.folder.Run, t.ID, api.LogPart{File: "stderr", Last: 1 << 10})
	if err != nil || len(said) == 0 { // of a script that has ended with this status itself
		id := int(c.folder.Base()) + t.Number
		return cmp.Or(err, fmt.Errorf("job %d ended with exit status %d", id, step.ExitUnable))
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(string(said)), "pilot: "))
}
