package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/examples/lambda"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/plan"
)

// A planned is the plan for the example, together with texts that describe the plan.
type planned struct {
	*plan.Plan
	row corral.Plan
}

// decide makes corrald plan how many pilots to request, when to request them, and which tasks share a job. The plan is
// printed before any task runs, so that it can be compared with the outcome. Cost and makespan have equal weight, so
// that a machine with many cpus is not filled just to save a second.
func (d *demo) decide(ctx context.Context) error {
	d.out.doing("planning")
	document, err := os.ReadFile(d.workflow())
	if err != nil {
		return fmt.Errorf("reading the workflow: %w", err)
	}
	began := time.Now()
	d.plan.row, err = d.cl.CreatePlan(ctx, api.NewPlan{
		Cluster: d.cluster, Workflow: document, WorkflowName: lambda.WorkflowFile, Sites: []string{personal.Site},
		Goal: plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, HostCPUs: 1,
	}, "")
	if err != nil {
		return err
	}
	if d.plan.Plan, err = plan.Decode(d.plan.row); err != nil {
		return err
	}
	if !d.plan.Feasible {
		return corral.Errorf(corral.Unsatisfiable, "%s", d.plan.row.Reason)
	}
	d.showPlan(time.Since(began))
	return nil
}

// showPlan prints the plan and its reasons.
func (d *demo) showPlan(took time.Duration) {
	p := d.plan
	d.out.say("plan", "%d tasks on %s: %s and %s predicted, of which %.0f %% work", len(p.Schedule), p.held(),
		round(time.Duration(p.Makespan)), plan.CoreTime(p.CoreHours), 100*(1-p.Waste))
	for _, q := range p.Pilots {
		d.out.more("a pilot of %d × %s, asked for after %s, ready after %s, released after %s", q.Hosts,
			counted(q.CPUs, "cpu"), round(time.Duration(q.Submit)), round(time.Duration(q.Ready)),
			round(time.Duration(q.End)))
	}
	for _, reason := range p.Reasons {
		d.out.more("%s", reason)
	}
	d.out.more("%s was made in %s", p.what(), round(took))
}

// held describes the maximum number of cpus that the plan's pilots hold.
func (p planned) held() string { return counted(p.PeakCPUs, "cpu") + " at most" }

func (p planned) what() string {
	if points := len(p.Front); points > 1 {
		return fmt.Sprintf("this plan, one of %d of which no other is both sooner and cheaper,", points)
	}
	return "this plan"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// provision requests the plan's pilots and waits for the workers of the pilots that are due at once. If the demo is
// killed, the pilots end after a minute without work.
func (d *demo) provision(ctx context.Context) (err error) {
	d.out.doing("waiting for workers")
	if d.plan.row, err = d.cl.ProvisionPlan(ctx, d.plan.row.ID); err != nil {
		return err
	}
	glideins, err := d.cl.Glideins(ctx, api.Filter{})
	if err != nil {
		return err
	}
	for _, g := range slices.DeleteFunc(glideins, func(g corral.Glidein) bool { return !g.NotBefore.IsZero() }) {
		if _, err = d.cl.WaitGlidein(ctx, g.ID, api.UntilWorkers, patience); err != nil {
			return err
		}
	}
	workers, err := d.cl.Workers(ctx, d.cluster)
	if err != nil {
		return err
	}
	print := d.out.first("pilots")
	for i, w := range workers {
		print("worker %d registered after %s: process %d on %s, %d MiB",
			i, round(w.RegisteredAt.Sub(d.plan.row.BeganAt)), w.PID, w.Host, w.MemoryMiB)
	}
	return nil
}

// work returns the sum of the tasks' estimates.
func (p planned) work() (sum time.Duration) {
	for _, at := range p.Schedule {
		sum += time.Duration(at.End - at.Start)
	}
	return sum
}

// workflow returns the path of the example's file.
func (d *demo) workflow() string { return filepath.Join(d.dir, "lambda", lambda.WorkflowFile) }

// compared describes the error of the prediction.
func (p planned) compared(r corral.Run) string {
	took := r.EndedAt.Sub(p.row.BeganAt)
	predicted := time.Duration(p.Makespan)
	return fmt.Sprintf("%s after the pilots were asked for; %s was predicted (%s)", round(took), round(predicted),
		strings.Replace(fmt.Sprintf("%+.0f %%", 100*(float64(took)/float64(max(predicted, 1))-1)), "-", "−", 1))
}
