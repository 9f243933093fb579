package slurm

// Whether workers see a directory is known only to them. Each step looks before it begins anything, and ends if its
// job's directory is not there or is another one. So nothing wrong can happen; but a thousand jobs would fail one by
// one where one sentence of sbatch would do. Therefore the first job on a file system has the workers look before it is
// made: as many tasks as there are workers, which come and go in milliseconds. Each ends well and prints what it sees,
// so that the run does not fail by it. What was seen once is not asked again: the note of it is the folder's, so that
// other shims ask for themselves.

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
	// seenNote is a folder's file with the file systems that a worker was found to see.
	seenNote = ".corral-seen"

	probeName = "probe"          // of the tasks that look
	mostProbe = 8                // workers that are asked
	probeWait = 2 * time.Minute  // for workers that are free: in HTCondor it takes a while until they have a job
	busyWait  = 10 * time.Second // for workers that were free, and have got something else to do
	lookEvery = time.Second
)

// sight refuses a job whose directory no worker sees, as far as that can be known: each step looks for itself. Of each
// file system of this machine the workers are asked until one of them sees it, by tasks of the run that begin nothing.
func (c *call) sight(o step.Order) error {
	system := fileSystem(o.Place)
	note := filepath.Join(c.folder.Path, seenNote)
	if known, _ := input.ReadFile(note, 64<<10); slices.Contains(strings.Split(string(known), "\n"), system) {
		return nil
	}
	workers, err := c.workers()
	// A busy worker would answer when it is free, which may take days.
	if err != nil || !slices.ContainsFunc(workers, free) || len(workers) > mostProbe {
		return err
	}
	probes, err := c.look(o, workers)
	if err != nil {
		return err
	}
	switch seen, why := judge(probes, workers); seen {
	case notSeen:
		return errors.New(why)
	case undecided:
		return nil
	}
	// Short lines are appended whole, even when others append at the same time.
	f, err := os.OpenFile(note, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil // then they are asked again
	}
	defer f.Close()
	_, _ = fmt.Fprintln(f, system)
	return nil
}

// workers asks for the cluster's workers.
func (c *call) workers() ([]corral.Worker, error) {
	return untilAnswered(c, func() ([]corral.Worker, error) { return c.client.Workers(c.ctx, c.folder.Cluster) })
}

// free reports whether a worker could begin a probe at once. In HTCondor a part of one that waits for the next job is
// neither free nor busy.
func free(w corral.Worker) bool {
	return w.Connected && !w.Draining && (w.CPUsFree > 0 || w.RunningTasks == 0)
}

// A probe is a task that looks, as far as it has got.
type probe struct {
	worker      string
	begun, over bool
	sees        bool
	blind       string // why it does not see the directory; empty if it has not said so
}

// What is known by what probes say.
type sighting uint8

const (
	undecided sighting = iota // or nothing that all of them could say would decide it
	isSeen
	notSeen
)

// judge says whether a job's directory is seen by a worker, or by none of them, and why not. One that sees it is
// enough, and so is one that was not asked or could not answer: a job finds out by itself where it is.
func judge(probes []probe, workers []corral.Worker) (seen sighting, why string) {
	blind := map[string]bool{}
	for _, p := range probes {
		switch {
		case p.sees:
			return isSeen, ""
		case p.blind != "":
			blind[p.worker], why = true, p.blind
		}
	}
	if why == "" || slices.ContainsFunc(workers, func(w corral.Worker) bool { return !blind[w.ID] }) {
		return undecided, ""
	}
	return notSeen, why
}

// fileSystem names the file system of a job's directory.
func fileSystem(p step.Place) string {
	var st syscall.Stat_t
	_ = syscall.Stat(p.Directory, &st) // it was there a moment ago
	return fmt.Sprintf("%s %x", p.Host, st.Dev)
}

// look has as many tasks as there are workers look for a job's directory, and returns what they have said after a
// while. Those that have not looked by then look later, and nothing waits for them.
func (c *call) look(o step.Order, workers []corral.Worker) ([]probe, error) {
	added, err := c.probe(o, len(workers))
	if err != nil {
		return nil, err
	}
	probes, start := make([]probe, added.Count), time.Now()
	for {
		// Asked in this order, a worker that is busy with a probe has begun it, as the tasks are told.
		workers, err := c.workers()
		if err != nil {
			return nil, err
		}
		tasks, err := untilAnswered(c, func() ([]api.Task, error) {
			return c.client.WaitTasks(c.ctx, c.folder.Run, added.Numbers(), lookEvery)
		})
		if err != nil && corral.KindOf(err) != corral.Timeout {
			return nil, err
		}
		late, begun, sees := 0, 0, false
		for i := range min(len(tasks), len(probes)) {
			p := &probes[i]
			p.hear(c, tasks[i])
			sees = sees || p.sees
			if !p.over {
				late++
				if p.begun {
					begun++
				}
			}
		}
		busy := begun == 0 && !slices.ContainsFunc(workers, free)
		waited := time.Since(start)
		if sees || late == 0 || waited > probeWait || busy && waited > busyWait {
			return probes, nil
		}
	}
}

// hear notes what has become of a probe. What it says is asked for once.
func (p *probe) hear(c *call, t api.Task) {
	if p.over {
		return
	}
	p.worker, p.over = t.Worker, t.State.Over()
	p.begun = p.over || t.State == corral.TaskRunning
	if t.State != corral.TaskDone { // or it was cancelled, or its worker could not run it
		return
	}
	said, err := untilAnswered(c, func() ([]byte, error) {
		return c.client.RunTaskLog(c.ctx, c.folder.Run, t.ID, api.LogPart{File: "stdout", Last: 16 << 10})
	})
	if err != nil { // what it saw is not known
		return
	}
	why, blind := strings.CutPrefix(strings.TrimSpace(string(said)), step.Blind)
	if p.sees = !blind; blind {
		p.blind = why
	}
}

// probe adds n tasks that look for a job's directory.
func (c *call) probe(o step.Order, n int) (api.AddedTasks, error) {
	// It is the job's own order, so that a step looks for just what it would look for. But there may be more probes
	// than tasks in its array.
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

// unable reports whether a step may have begun nothing of its job. A script can end with the same status.
func unable(t api.Task) bool {
	return t.State == corral.TaskFailed && t.ExitStatus != nil && *t.ExitStatus == step.ExitUnable
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
