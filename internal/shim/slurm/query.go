package slurm

// The commands below change nothing. Package job parses the selection, and prints the result; this file fetches the
// jobs. It fetches as few jobs as possible: clients ask about a few of ten thousand jobs, and ask about all of them
// every few seconds.

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/job"
)

// release is the emulated release of Slurm, as printed by --version.
const release = "22.05.8"

// squeue lists waiting and running jobs.
func squeue(c *call) error {
	q, err := job.ParseQueue(c.args, os.Getenv, whoever().Name)
	if err != nil {
		return err
	}
	if q.Other != "" {
		return c.tellOther(q.Other)
	}
	for _, name := range strangers(q.Users()) {
		fmt.Fprintf(c.Err, "squeue: error: Invalid user: %s\n\n", name) // like Slurm, which continues with the others
	}
	if err := openOf(c, q.Clusters); err != nil {
		return err
	}
	now := time.Now()
	jobs, err := c.chosen(q.Filter, now.Add(-minJobAge))
	if err != nil {
		return err
	}
	q.Title = c.title
	return q.Write(c.Out, jobs, now)
}

// minJobAge is the time for which squeue and scontrol continue to list a job that has ended, unless it is named:
// Slurm's default.
const minJobAge = 300 * time.Second

// tellOther prints the version or the usage of a command. The version is Slurm's, because clients choose their options
// accordingly.
func (c *call) tellOther(what string) error {
	if what == "version" {
		fmt.Fprintln(c.Out, "slurm-wlm", release)
		return exit(0)
	}
	const usage = "Usage: %[1]s [OPTIONS]\nSee the manual page of Slurm's %[1]s, and docs/slurm-shim.md of Corral.\n"
	fmt.Fprintf(c.Out, usage, c.name)
	return exit(0)
}

// chosen requests only the jobs that a filter can select, in the order of their numbers. If the filter names no jobs,
// jobs that ended before since are omitted.
func (c *call) chosen(f job.Filter, since time.Time) ([]job.Job, error) {
	if len(f.Jobs) == 0 {
		// Skipped tasks are always requested, because a skipped task may be a waiting job.
		jobs, err := c.jobs(api.TaskQuery{States: statesOf(f.States), Since: since})
		return slices.DeleteFunc(jobs, func(j job.Job) bool {
			return j.State.Over() && !j.Times.Ended.IsZero() && j.Times.Ended.Before(since)
		}), err
	}
	found, err := c.expand(f.Jobs)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b job.Job) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b job.Job) bool { return a.ID == b.ID }), nil
}

// statesOf returns the states of tasks that can correspond to the given states of jobs; none: all states.
func statesOf(wanted []job.State) (states []corral.TaskState) {
	for _, s := range wanted {
		switch s {
		case job.Pending:
			states = append(states, corral.TaskWaiting, corral.TaskReady, corral.TaskSkipped)
		case job.Running, job.Completing:
			states = append(states, corral.TaskRunning)
		case job.Completed:
			states = append(states, corral.TaskDone)
		default:
			// If a job's dependency failed, it is cancelled if its user requested that, and otherwise keeps waiting, as
			// in Slurm.
			states = append(states, corral.TaskFailed, corral.TaskSkipped)
		}
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// sacct lists jobs, including those that have ended.
func sacct(c *call) error {
	a, err := job.ParseAcct(c.args, os.Getenv, whoever().Name)
	if err != nil {
		return err
	}
	if a.Other == "version" || a.Other == "help" {
		return c.tellOther(a.Other)
	}
	if unknown := strangers(a.Users()); len(unknown) > 0 {
		return fmt.Errorf("Invalid user id: %s", unknown[0]) // Slurm's wording
	}
	now := time.Now()
	since, err := a.Since(now)
	if err != nil {
		return err
	}
	var jobs []job.Job
	if a.Other == "" {
		if err := c.open(); err != nil {
			return err
		}
		// For other clusters, Slurm's database has no jobs, and sacct prints no error.
		if other := elsewhere(c, a.Clusters); a.Clusters == "" || len(other) <= strings.Count(a.Clusters, ",") {
			if jobs, err = c.chosen(a.Filter, since); err != nil {
				return err
			}
		}
	}
	return a.Write(c.Out, jobs, now)
}

// sinfo shows the cluster as the only partition, and its workers as nodes.
func sinfo(c *call) error {
	i, err := job.ParseInfo(c.args, os.Getenv)
	if err != nil {
		return err
	}
	if i.Other != "" {
		return c.tellOther(i.Other)
	}
	if err := openOf(c, i.Clusters); err != nil {
		return err
	}
	workers, err := c.workers()
	if err != nil {
		return err
	}
	// A worker is a node, even if several workers share a machine: it is the environment of a job.
	p := job.Partition{Name: c.folder.Cluster}
	for _, w := range workers {
		p.Nodes = append(p.Nodes, job.Node{
			Name: node(w.ID), CPUs: w.CPUs, Busy: w.CPUs - w.CPUsFree, MemoryMiB: int64(w.MemoryMiB), GPUs: w.GPUs,
			Leaving: w.Draining,
		})
	}
	i.Title = c.title
	return i.Write(c.Out, []job.Partition{p}, time.Now())
}

// sacctmgr reports that the calling user may submit jobs: there are no accounts that could be changed.
func sacctmgr(c *call) error {
	f, err := Found(c.at, os.Getenv)
	if err != nil {
		return err
	}
	who := whoever().Name
	text, err := job.Users(c.args, []job.Association{
		{User: who, Account: who, Cluster: f.Cluster, DefaultAccount: who, Admin: "None"},
	})
	fmt.Fprint(c.Out, text)
	return err
}
