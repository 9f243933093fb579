// Command provision is a program that does its own provisioning: it plans pilots for a workflow, requests them, runs
// the workflow on them and releases them. It imports only public packages of Corral: the root package, api and plan.
//
//	provision [-deadline D] WORKFLOW.json
//
// It prints the run's id. The exit code is that of corral for the same error (docs/api.md), and 0 only if every task
// succeeded.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

func main() {
	deadline := flag.String("deadline", "1h", "`D` by which the workflow must end, such as 6h or Friday 17:00")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := provision(ctx, flag.Arg(0), *deadline)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "provision:", err)
		os.Exit(api.ExitCode(err))
	}
}

// provision runs a workflow on pilots that are requested for it alone.
func provision(ctx context.Context, file, deadline string) error {
	within, at, err := api.ReadDeadline(deadline, time.Now())
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "-deadline", "%w", err)
	}
	workflow, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	cl, err := api.New(os.Getenv("CORRAL_SERVER")) // unix:PATH, or a URL
	if err != nil {
		return err
	}
	defer cl.Close()

	made, err := cl.CreatePlan(ctx, api.NewPlan{
		WorkflowName: file, Workflow: workflow, Goal: plan.Goal{Deadline: within, DeadlineAt: at},
	}, "")
	if err != nil {
		return err
	}
	if made.State == corral.PlanInfeasible {
		return corral.Errorf(corral.Unsatisfiable, "%s", made.Reason)
	}
	if _, err = cl.ProvisionPlan(ctx, made.ID); err == nil {
		err = run(ctx, cl, made, file, workflow)
	}
	return errors.Join(err, release(ctx, cl, made.ID))
}

// run waits for the run's end. Workers may arrive later than the run, whose tasks wait for them.
func run(ctx context.Context, cl *api.Client, made corral.Plan, file string, workflow []byte) error {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	n := api.NewRun{
		Workflow: workflow, WorkflowName: filepath.Base(file), SourceDir: dir,
		Labels: map[string]string{"plan": strconv.FormatInt(int64(made.ID), 10)},
	}
	key := rand.Text() // a repetition with the same key creates no second run
	r, err := cl.CreateRun(ctx, n, key)
	if err == nil {
		fmt.Println(r.ID)
		r, err = cl.WaitRun(ctx, r.ID, 0)
	}
	if ctx.Err() != nil { // interrupted, perhaps before the run's id was known: no pilots are left for it
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		r, again := cl.CreateRun(bounded, n, key)
		if again == nil {
			_, again = cl.CancelRun(bounded, r.ID)
		}
		return errors.Join(err, again)
	}
	if err == nil && r.State != corral.RunSucceeded {
		err = corral.Errorf(corral.Failed, "run %d is %s: %s", r.ID, r.State, r.Reason)
	}
	return err
}

// release releases the pilots, even if the program was interrupted.
func release(ctx context.Context, cl *api.Client, id corral.PlanID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err := cl.ReleasePlan(ctx, id)
	return err
}
