package main

// Plans that are executed: what was predicted beside what happened. Each case takes the way of `corral run --auto`: a
// plan that is to be revised, its pilots, the run under the plan's label; then all pilots are let go.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	money "github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/internal/personal"
	planning "github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
)

// instances are the workflows that are executed, as far as -instances has them, from its top. The last six are in the
// repository, too.
var instances = []string{
	"pegasus/montage/montage-chameleon-2mass-01d-001",
	"pegasus/montage/montage-chameleon-dss-05d-001",
	"pegasus/seismology/seismology-chameleon-300p-001",
	"pegasus/1000genome/1000genome-chameleon-6ch-100k-001",
	"pegasus/cycles/cycles-chameleon-1l-2c-9p-001",
	"pegasus/epigenomics/epigenomics-chameleon-hep-2seq-100k-001",
	"pegasus/soykb/soykb-chameleon-10fastq-10ch-001",
	"pegasus/srasearch/srasearch-chameleon-50a-001",
	"makeflow/bwa/bwa-chameleon-small-001",
	"nextflow/viralrecon-dirt02-001",
	"pegasus/epigenomics/epigenomics-chameleon-hep-1seq-100k-001",
	"pegasus/srasearch/srasearch-chameleon-10a-001",
	"makeflow/blast/blast-chameleon-small-001",
	"nextflow/bacass-dirt02-001",
	"helloworld/helloworld-forkjoin-10-chameleon",
}

// mostInstances are executed.
const mostInstances = 10

// Of a run whose tasks err, by how much they do, and what its plan may take beside what it would without errors.
const (
	runtimeError = 0.3
	deadlineOver = 1.3
	budgetOver   = 1.1
)

// measurePlans executes plans of all instances, and publishes how they went.
func (p plan) measurePlans(ctx context.Context, dir string) (err error) {
	if err := usePrograms(p.bin); err != nil {
		return err
	}
	// Sleeping tasks need no processor: the machine lends more than it has.
	if err := os.Setenv("CORRALD_MACHINE_CPUS", fmt.Sprint(p.cpus)); err != nil {
		return err
	}
	m := thisMachine(dir)
	s, err := newStand(ctx, filepath.Join(dir, "s"))
	defer func() { err = errors.Join(err, s.takeDown()) }()
	if err != nil {
		return err
	}
	var all []outcome
	for _, name := range instances {
		if len(all) == mostInstances {
			break
		}
		wf, err := readInstance(ctx, filepath.Join(p.instances, filepath.FromSlash(name)+".json.gz"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		o, err := p.executeInstance(ctx, s, wf)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, o...)
	}
	if len(all) == 0 {
		return fmt.Errorf("none of the instances is in %s", p.instances)
	}
	return p.publish(m, "\n\n"+plansReport(all))
}

// executeInstance executes one instance as estimated, and then with errors, once for each round.
func (p plan) executeInstance(ctx context.Context, s *stand, wf *workflow.Workflow) (all []outcome, err error) {
	a := asleep{scale: fastest(wf, p.span)}
	document, err := a.document(wf)
	if err != nil {
		return nil, err
	}
	goal, err := s.goalNear(ctx, document, p.span)
	if err != nil {
		return nil, err
	}
	exact, err := s.execute(ctx, wf.Name, document, goal)
	if err != nil {
		return nil, err
	}
	p.say("%s", exact)
	all = append(all, exact)
	goal.Deadline = corral.Seconds(deadlineOver * float64(exact.predicted.Makespan))
	goal.Budget = &money.Amount{Unit: exact.predicted.Cost.Unit,
		Money: money.Money(budgetOver * float64(exact.predicted.Cost.Money))}
	a.err = runtimeError
	for range p.rounds {
		a.seed++
		if document, err = a.document(wf); err != nil {
			return nil, err
		}
		o, err := s.execute(ctx, wf.Name, document, goal)
		if err != nil {
			return nil, err
		}
		o.seed = a.seed
		p.say("%s", o)
		all = append(all, o)
	}
	return all, nil
}

// weights of money beside time, from which the goal is chosen.
var weights = []float64{0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1}

// goalNear returns the goal whose plan ends nearest to an end that is wished for. Limits that this plan keeps do not
// change it, so that a deadline and a budget can be given beside it.
func (s *stand) goalNear(ctx context.Context, document []byte, wished time.Duration) (best planning.Goal, err error) {
	nearest := math.Inf(1)
	for _, w := range weights {
		goal := planning.Goal{Objective: planning.Tradeoff, Tradeoff: w}
		_, made, err := s.plan(ctx, api.NewPlan{Workflow: document, Goal: goal, DryRun: true})
		if err != nil {
			return goal, err
		}
		if far := math.Abs(math.Log(float64(made.Makespan) / float64(wished))); far < nearest {
			best, nearest = goal, far
		}
	}
	return best, nil
}

// plan has a plan made for the cluster that every new corrald has.
func (s *stand) plan(ctx context.Context, in api.NewPlan) (row corral.Plan, made planning.Plan, err error) {
	in.Cluster, in.WorkflowName = personal.Cluster, "asleep.json"
	if row, err = s.cl.CreatePlan(ctx, in, ""); err == nil {
		err = json.Unmarshal(row.Document, &made)
	}
	return row, made, err
}

// execute plans and runs a workflow, and lets its pilots go.
func (s *stand) execute(ctx context.Context, name string, document []byte, goal planning.Goal) (o outcome, err error) {
	planned, made, err := s.plan(ctx, api.NewPlan{Workflow: document, Goal: goal, Auto: true})
	if err != nil {
		return o, err
	}
	o = outcome{name: name, tasks: len(made.Schedule), goal: goal, predicted: made.Point}
	if planned.State != corral.PlanReady {
		o.trouble = planned.Reason
		return o, nil
	}
	if planned, err = s.cl.ProvisionPlan(ctx, planned.ID); err != nil {
		return o, err
	}
	in := request(document, made.Clustering.String())
	in.Labels = map[string]string{"plan": fmt.Sprint(planned.ID)}
	run, err := s.cl.CreateRun(ctx, in, "")
	if err != nil {
		return o, err
	}
	if run, err = s.finish(ctx, run, planned.ID, &o); err != nil {
		return o, err
	}
	if !run.EndedAt.IsZero() {
		o.took = run.EndedAt.Sub(planned.BeganAt)
	}
	err = s.account(ctx, planned, &o)
	return o, err
}

// finish waits for the run's end. A run whose budget is used up waits without end: it is cancelled.
func (s *stand) finish(ctx context.Context, run corral.Run, id corral.PlanID, o *outcome) (corral.Run, error) {
	patient := time.Now().Add(2*time.Duration(o.predicted.Makespan) + 10*time.Second)
	for {
		next, err := s.cl.WaitRun(ctx, run.ID, 2*time.Second)
		if err == nil && next.State.Over() {
			run = next
			break
		}
		if next, err = s.cl.Run(ctx, run.ID); err != nil {
			return run, err
		}
		if next.State.Over() {
			run = next
			break
		}
		if time.Now().After(patient) {
			o.trouble = fmt.Sprintf("%d of %d tasks done", next.Tasks.Done, o.tasks)
			if run, err = s.cl.CancelRun(ctx, run.ID); err != nil {
				return run, err
			}
			break
		}
	}
	if run.State != corral.RunSucceeded && o.trouble == "" {
		o.trouble = strings.TrimSpace(fmt.Sprintf("%s %s", run.State, run.Reason))
	}
	_, err := s.cl.ReleasePlan(ctx, id)
	return run, err
}

// account waits until no pilot of the plan is left, and adds up what they held and what the revisions said.
func (s *stand) account(ctx context.Context, of corral.Plan, o *outcome) error {
	deadline := time.Now().Add(patience)
	for {
		all, err := s.cl.Glideins(ctx, api.Filter{All: true})
		if err != nil {
			return err
		}
		held, left := holding(all, of.ID)
		if o.held = held; left == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d pilots of plan %d stay", left, of.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	revisions, err := s.cl.PlanRevisions(ctx, of.ID)
	for _, r := range revisions {
		o.revise(r, of.BeganAt)
	}
	return err
}

// holding returns the cpu time that the pilots of a plan held, and how many of them are not over.
func holding(all []corral.Glidein, id corral.PlanID) (held time.Duration, left int) {
	for _, g := range all {
		if g.Labels["plan"] != fmt.Sprint(id) {
			continue
		}
		if !g.State.Terminal() {
			left++
		}
		for _, j := range g.Attempts {
			if !j.StartedAt.IsZero() && !j.EndedAt.IsZero() {
				held += time.Duration(g.Hosts*g.CPUs) * j.EndedAt.Sub(j.StartedAt)
			}
		}
	}
	return held, left
}
