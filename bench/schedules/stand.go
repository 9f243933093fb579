package main

import (
	"context"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/service/personal"
)

const (
	walltime = time.Hour       // of the pilots
	patience = 2 * time.Minute // for any single operation except a run
)

// A stand is a private corrald below a directory, with workers of one CPU.
type stand struct{ rig.Service }

// startCorrald starts a corrald without workers. The caller must end it, even if there is an error.
func startCorrald(ctx context.Context, dir string) (*stand, error) {
	s := &stand{rig.NewService(dir, "")}
	err := s.Start(ctx)
	if err == nil {
		_, err = personal.SetUp(ctx, s.Client)
	}
	return s, err
}

// newStand is startCorrald with workers on this machine.
func newStand(ctx context.Context, dir string, workers int) (*stand, error) {
	s, err := startCorrald(ctx, dir)
	if err != nil {
		return s, err
	}
	g, err := s.Client.CreateGlidein(ctx, api.NewGlidein{Site: personal.Site,
		Shape: corral.Shape{Hosts: workers, CPUs: 1, Walltime: corral.Seconds(walltime)}}, "")
	if err == nil {
		_, err = s.Client.WaitGlidein(ctx, g.ID, api.UntilWorkers, patience)
	}
	return s, err
}

// An outcome is the clustering of a workflow, and its duration from the first task's start, according to the workers'
// clocks.
type outcome struct {
	how  string
	took time.Duration
	own  time.Duration // list schedule of the measured durations of its tasks, each with process start and end
}

// run runs a workflow.
func (s *stand) run(ctx context.Context, a asleep, rule string) (o outcome, err error) {
	document, err := a.document()
	if err != nil {
		return o, err
	}
	r, err := s.Client.CreateRun(ctx, api.NewRun{Cluster: personal.Cluster, Workflow: document,
		WorkflowName: "asleep.json", SourceDir: os.TempDir(), Options: corral.RunOptions{Clustering: rule}}, "")
	if err != nil {
		return o, err
	}
	for deadline := time.Now().Add(patience + 10*a.listSchedule(1)); !r.State.Over() && time.Now().Before(deadline); {
		next, err := s.Client.WaitRun(ctx, r.ID, 30*time.Second)
		if err != nil {
			if next, err = s.Client.Run(ctx, r.ID); err != nil {
				return o, err
			}
		}
		r = next
	}
	if r.State != corral.RunSucceeded || r.Report == nil {
		return o, corral.Errorf(corral.Failed, "run %d of %s is %s: %s", r.ID, a.wf.Name, r.State, r.Reason)
	}
	return outcome{r.Options.Clustering, time.Duration(r.Report.Makespan - r.Report.WaitForWorkers),
		time.Duration(r.Report.ListSchedule)}, nil
}
