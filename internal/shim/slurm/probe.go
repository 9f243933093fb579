package slurm

// Only workers know whether they see a directory. Each step checks this before it starts, and ends if its job's
// directory is missing or is a different directory. So no harm is done, but a thousand jobs would fail one by one where
// a single error of sbatch would be enough. Therefore, before the first job on a file system is created, the workers
// check whether they see it: as many tasks as there are workers run for a few milliseconds. Each of these tasks exits
// with success and prints its result, so that it does not make the run fail. A file system that was seen once is not
// checked again; the record is kept in the folder, so other shims make their own checks.

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
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

const (
	// seenNote is a folder's file with the file systems that a worker has seen.
	seenNote = ".corral-seen"

	probeName = "probe"          // name of the tasks that check
	mostProbe = 8                // maximum number of workers that check
	probeWait = 2 * time.Minute  // for free workers: HTCondor needs some time to assign jobs to them
	busyWait  = 10 * time.Second // for workers that were free but have become busy
	lookEvery = time.Second
)

// sight refuses a job whose directory no worker sees, as far as that can be determined: each step checks again. For
// each file system of this machine, the workers repeat the check, with tasks of the run that start no job, until one
// worker sees the file system.
func (c *call) sight(o step.Order) error {
	system := fileSystem(o.Place)
	note := filepath.Join(c.folder.Path, seenNote)
	if known, _ := input.ReadFile(note, 64<<10); slices.Contains(strings.Split(string(known), "\n"), system) {
		return nil
	}
	workers, err := c.workers()
	// A busy worker would reply when it is free, which may take days.
	if err != nil || !slices.ContainsFunc(workers, free) || len(workers) > mostProbe {
		return err
	}
	probes, err := c.look(o, workers)
	if err != nil {
		return err
	}
	seen, blind := judge(probes, workers)
	if blind != "" {
		return errors.New(blind)
	} else if !seen {
		return nil
	}
	// Short lines are appended atomically, even if other processes append at the same time.
	f, err := os.OpenFile(note, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil // the workers are asked again next time
	}
	defer f.Close()
	_, _ = fmt.Fprintln(f, system)
	return nil
}

// workers requests the cluster's workers.
func (c *call) workers() ([]corral.Worker, error) {
	return untilAnswered(c, func() ([]corral.Worker, error) { return c.client.Workers(c.ctx, c.folder.Cluster) })
}

// free reports whether a worker could start a probe at once. In HTCondor, a part of a worker that waits for the next
// job is neither free nor busy.
func free(w corral.Worker) bool {
	return w.Connected && !w.Draining && (w.CPUsFree > 0 || w.RunningTasks == 0)
}

// A probe is the state of a task that checks a directory.
type probe struct {
	worker      string
	begun, over bool
	sees        bool
	blind       string // why it does not see the directory; empty: not reported
}

// judge reports whether a worker sees a job's directory. If no worker sees it, blind is the reason; if this is not
// known, blind is empty. One worker that sees the directory is enough to accept the job. The job is also accepted if a
// worker was not asked or could not reply: the job then makes the check itself.
func judge(probes []probe, workers []corral.Worker) (seen bool, blind string) {
	reasons := map[string]string{}
	for _, p := range probes {
		if p.sees {
			return true, ""
		}
		if p.blind != "" {
			reasons[p.worker], blind = p.blind, p.blind
		}
	}
	if slices.ContainsFunc(workers, func(w corral.Worker) bool { return reasons[w.ID] == "" }) {
		return false, ""
	}
	return false, blind
}

// fileSystem identifies the file system of a job's directory.
func fileSystem(p step.Place) string {
	var st syscall.Stat_t
	_ = syscall.Stat(p.Directory, &st) // it existed a moment ago
	return fmt.Sprintf("%s %x", p.Host, st.Dev)
}

// look runs as many tasks as there are workers to check a job's directory, and returns their results after some time.
// Tasks that have not finished by then finish later, and nothing waits for them.
func (c *call) look(o step.Order, workers []corral.Worker) ([]probe, error) {
	added, err := c.probe(o, len(workers))
	if err != nil {
		return nil, err
	}
	probes, start := make([]probe, added.Count), time.Now()
	for {
		// The workers are requested before the tasks, so that any probe that keeps a worker busy is listed as begun.
		workers, err := c.workers()
		if err != nil {
			return nil, err
		}
		tasks, err := untilAnswered(c, func() ([]api.TaskStatus, error) {
			return c.client.WaitTasks(c.ctx, c.folder.Run, added.Numbers(), lookEvery)
		})
		late := corral.KindOf(err) == corral.Timeout // some are not over
		if err != nil && !late {
			return nil, err
		}
		for i := range min(len(tasks), len(probes)) {
			probes[i].hear(c, tasks[i])
		}
		is := func(what func(probe) bool) bool { return slices.ContainsFunc(probes, what) }
		busy := !is(func(p probe) bool { return p.begun && !p.over }) && !slices.ContainsFunc(workers, free)
		waited := time.Since(start)
		if is(func(p probe) bool { return p.sees }) || !late || waited > probeWait || busy && waited > busyWait {
			return probes, nil
		}
	}
}

// hear records the progress of a probe. The probe's output is requested only once.
func (p *probe) hear(c *call, t api.TaskStatus) {
	if p.over {
		return
	}
	p.worker, p.over = t.Worker, t.State.Over()
	p.begun = p.over || t.State == corral.TaskRunning
	if t.State != corral.TaskDone { // it was cancelled, or its worker could not run it
		return
	}
	said, err := untilAnswered(c, func() ([]byte, error) {
		return c.client.RunTaskLog(c.ctx, c.folder.Run, t.ID, api.LogPart{File: "stdout", Last: 16 << 10})
	})
	if err != nil { // its result is unknown
		return
	}
	why, blind := strings.CutPrefix(strings.TrimSpace(string(said)), step.Blind)
	if p.sees = !blind; blind {
		p.blind = why
	}
}

// probe adds n tasks that check a job's directory.
func (c *call) probe(o step.Order, n int) (api.AddedTasks, error) {
	// It uses the job's own order, so that a step checks exactly the same directory. The array is removed, because
	// there may be more probes than tasks in the job's array.
	o.Probe, o.Array = true, ""
	note, err := o.Encode()
	if err != nil {
		return api.AddedTasks{}, err
	}
	key := rand.Text()
	return untilAnswered(c, func() (api.AddedTasks, error) {
		return c.client.AddTask(c.ctx, c.folder.Run, api.NewTask{
			Name: probeName, Argv: []string{corral.PilotProgram, step.Command}, Note: string(note), Elements: n,
			Resources: corral.Resources{CPUs: 1}, Requeue: true, Priority: api.MaxPriority,
		}, key)
	})
}

// unable reports whether a step may have failed to start its job. A script can end with the same status.
func unable(t api.TaskStatus) bool {
	return t.State == corral.TaskFailed && t.ExitStatus != nil && *t.ExitStatus == step.ExitUnable
}

// reason returns the error of a step that could not start its job.
func (c *call) reason(t api.TaskStatus) error {
	said, err := c.client.RunTaskLog(c.ctx, c.folder.Run, t.ID, api.LogPart{File: "stderr", Last: 1 << 10})
	if err != nil || len(said) == 0 { // a script that has ended with this status itself
		id := int(c.folder.Base()) + t.Number
		return cmp.Or(err, fmt.Errorf("job %d ended with exit status %d", id, step.ExitUnable))
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(string(said)), "pilot: "))
}
