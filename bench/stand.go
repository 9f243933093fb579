package main

// A stand is the measured system: the users' programs, started below a temporary directory and driven through the API.
// Once its workers are registered, it finds out which processes belong to it, so that it can read their processor time
// from /proc before and after a run.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/service/personal"
)

const (
	walltime = 30 * time.Minute // of the pilots: longer than a whole benchmark
	patience = 2 * time.Minute  // limit of each wait
)

// A stand is a service with the site and cluster that every new corrald has, and its pilots.
type stand struct {
	rig.Service
	self    process // corrald
	pilots  []process
	workers []process
}

// newStand starts a corrald below dir. The caller must take it down, even after an error.
func newStand(ctx context.Context, dir string) (*stand, error) {
	s := &stand{Service: rig.NewService(dir, "")}
	if err := s.Start(ctx); err != nil {
		return s, err
	}
	if _, err := personal.SetUp(ctx, s.Client); err != nil {
		return s, err
	}
	var err error
	s.self, _, err = processOf(s.Corrald.PID())
	return s, err
}

// provision requests pilots with one CPU each, waits for their workers and identifies their processes. With one pilot
// for each bare loop the two sides are comparable.
func (s *stand) provision(ctx context.Context, hosts int) error {
	g, err := s.Client.CreateGlidein(ctx, api.NewGlidein{
		Site: personal.Site, Shape: corral.Shape{Hosts: hosts, CPUs: 1, Walltime: corral.Seconds(walltime)},
	}, "")
	if err != nil {
		return err
	}
	if _, err := s.Client.WaitGlidein(ctx, g.ID, api.UntilWorkers, patience); err != nil {
		return err
	}
	workers, err := s.Client.Workers(ctx, personal.Cluster)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if err := s.meet(w.PID); err != nil {
			return err
		}
	}
	return nil
}

// meet records the processes of a worker and its pilot.
func (s *stand) meet(pid int) error {
	w, parent, err := processOf(pid)
	if err != nil {
		return err
	}
	s.workers = append(s.workers, w)
	pilot, _, err := processOf(parent)
	if err == nil && !slices.Contains(s.pilots, pilot) {
		s.pilots = append(s.pilots, pilot)
	}
	return err
}

// spent returns the processor time that the stand's processes have used so far. /proc keeps separate figures for the
// children that a process has waited for: a worker's children are its tasks, and corrald's are the shells of the site.
func (s *stand) spent() (c cost, err error) {
	add := func(processes []process, self, children part) {
		for _, p := range processes {
			st, trouble := statOf(p.pid)
			err = errors.Join(err, trouble)
			c[self] += st.self
			if children < parts {
				c[children] += st.children
			}
		}
	}
	add([]process{s.self}, partCorrald, partSite)
	add(s.pilots, partPilot, parts) // its children are the workers
	add(s.workers, partRunner, partTasks)
	return c, err
}

// run runs a workflow of that many tasks and measures from the start of the first task to the end of the last one, by
// the workers' clocks. corrald's work before and after it, reading the document and writing the report, counts as
// processor time but is not in the span. A run that did not execute all of its tasks is an error, because its figures
// would look too good.
func (s *stand) run(
	ctx context.Context, document []byte, tasks int, options corral.RunOptions,
) (m sample, err error) {
	before, err := s.spent()
	if err != nil {
		return m, err
	}
	run, err := s.Client.CreateRun(ctx, request(document, options), "")
	if err != nil {
		return m, err
	}
	if run, err = s.Client.WaitRun(ctx, run.ID, patience); err != nil {
		return m, err
	}
	if run.State != corral.RunSucceeded || run.Tasks.Done != tasks || run.Report == nil {
		return m, corral.Errorf(corral.Failed, "run %d is %s with %d of %d tasks done: %s", run.ID, run.State,
			run.Tasks.Done, tasks, run.Reason)
	}
	after, err := s.spent()
	if err != nil {
		return m, err
	}
	span := time.Duration(run.Report.Makespan - run.Report.WaitForWorkers)
	return sample{tasks: tasks, span: span, cost: after.minus(before)}, nil
}

// request asks for a run of a workflow without input files.
func request(document []byte, options corral.RunOptions) api.NewRun {
	return api.NewRun{
		Cluster: personal.Cluster, Workflow: document, WorkflowName: "noop.json", SourceDir: os.TempDir(),
		Options: options,
	}
}

// takeDown ends everything that the stand started. A process that does not end by itself is killed, and that is an
// error. A process's identity includes its start time, so another process that has reused its number is left alone.
func (s *stand) takeDown() error {
	err := s.End()
	for _, p := range slices.Concat(s.pilots, s.workers, []process{s.self}) {
		if p.alive() {
			err = errors.Join(err, fmt.Errorf("process %d had to be killed", p.pid),
				syscall.Kill(p.pid, syscall.SIGKILL))
		}
	}
	return err
}
