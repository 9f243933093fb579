package main

// Plans that are executed: predictions are compared with results. Each case follows `corral run --auto`: a plan with
// revisions, its pilots, and the run with the plan's label; afterwards all pilots are released.

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
	"github.com/corral-pilot/corral/internal/service/personal"
	planning "github.com/corral-pilot/corral/plan"
	money "github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
)

// instances are the workflows that are executed on a kind of cluster, if -instances contains them, from the top. Those
// for an embedded cluster have more and shorter tasks. The last five are also in the repository.
var instances = map[corral.ClusterKind][]string{
	corral.Embedded: append([]string{
		"pegasus/montage/montage-chameleon-2mass-02d-001",
		"pegasus/montage/montage-chameleon-dss-10d-001",
		"pegasus/1000genome/1000genome-chameleon-22ch-100k-001",
		"pegasus/cycles/cycles-chameleon-5l-2c-9p-001",
		"pegasus/epigenomics/epigenomics-chameleon-hep-6seq-100k-001",
		"pegasus/seismology/seismology-chameleon-900p-001",
		"pegasus/soykb/soykb-chameleon-50fastq-10ch-001",
		"makeflow/bwa/bwa-chameleon-medium-002",
		"pegasus/epigenomics/epigenomics-chameleon-hep-7seq-100k-001",
		"pegasus/epigenomics/epigenomics-chameleon-ilmn-5seq-100k-001",
	}, shipped...),
	corral.Condor: append([]string{
		"pegasus/montage/montage-chameleon-2mass-01d-001",
		"nextflow/smrnaseq-dirt02-001",
		"pegasus/1000genome/1000genome-chameleon-6ch-100k-001",
		"pegasus/cycles/cycles-chameleon-1l-2c-9p-001",
		"pegasus/epigenomics/epigenomics-chameleon-hep-2seq-100k-001",
		"pegasus/soykb/soykb-chameleon-10fastq-10ch-001",
		"pegasus/srasearch/srasearch-chameleon-50a-001",
		"makeflow/bwa/bwa-chameleon-small-001",
		"makeflow/blast/blast-chameleon-large-001",
		"nextflow/viralrecon-dirt02-001",
	}, shipped...),
}

// shipped are instances in the repository.
var shipped = []string{
	"pegasus/epigenomics/epigenomics-chameleon-hep-1seq-100k-001",
	"pegasus/srasearch/srasearch-chameleon-10a-001",
	"makeflow/blast/blast-chameleon-small-001",
	"nextflow/bacass-dirt02-001",
	"helloworld/helloworld-forkjoin-10-chameleon",
}

// meanTask is the mean runtime of a sleeping task: an embedded cluster is meant for short tasks, and a schedd starts
// few jobs per second.
var meanTask = map[corral.ClusterKind]time.Duration{
	corral.Embedded: 500 * time.Millisecond, corral.Condor: 2 * time.Second,
}

// mostInstances limits how many instances are executed.
const mostInstances = 10

// For runs with errors: the relative error of runtimes, and the limits of the plan relative to its prediction without
// errors.
const (
	runtimeError = 0.3
	deadlineOver = 1.3
	budgetOver   = 1.1
)

// A trial executes plans on one cluster.
type trial struct {
	plan
	cl      *api.Client
	cluster string
	kind    corral.ClusterKind
	dir     string // readable for the cluster's jobs
}

// measurePlans executes plans of all instances, and publishes the results.
func (p plan) measurePlans(ctx context.Context, dir string) (err error) {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	// Sleeping tasks need no processor: the machine offers more CPUs than it has.
	if err := os.Setenv("CORRALD_MACHINE_CPUS", fmt.Sprint(p.cpus)); err != nil {
		return err
	}
	m, kind := thisMachine(dir), corral.ClusterKind(p.kind)
	var all []outcome
	try := func(cl *api.Client, cluster, jobs string) (err error) {
		all, err = trial{plan: p, cl: cl, cluster: cluster, kind: kind, dir: jobs}.executeAll(ctx)
		return err
	}
	if kind == corral.Condor {
		err = p.onCondor(ctx, filepath.Join(dir, "s"), func(s *condorStand) error {
			if _, err := personal.SetUp(ctx, s.Client); err != nil {
				return err
			}
			return try(s.Client, pool, s.dir)
		})
	} else {
		s, trouble := newStand(ctx, filepath.Join(dir, "s"))
		if err = trouble; err == nil {
			err = try(s.Client, personal.Cluster, os.TempDir())
		}
		err = errors.Join(err, s.takeDown())
	}
	if err != nil {
		return err
	}
	return p.publish(m, "\n\n"+plansReport(all))
}

// executeAll executes the instances for a kind of cluster.
func (t trial) executeAll(ctx context.Context) (all []outcome, err error) {
	count := 0
	for _, name := range instances[t.kind] {
		if count == mostInstances {
			break
		}
		wf, err := readInstance(ctx, filepath.Join(t.instances, filepath.FromSlash(name)+".json.gz"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		o, err := t.executeInstance(ctx, wf)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all, count = append(all, o...), count+1
	}
	if count == 0 {
		return nil, fmt.Errorf("none of the instances is in %s", t.instances)
	}
	return all, nil
}

// executeInstance executes one instance without errors, and then with errors, once for each round.
func (t trial) executeInstance(ctx context.Context, wf *workflow.Workflow) (all []outcome, err error) {
	a := asleep{scale: fastest(wf, t.span, meanTask[t.kind])}
	document, err := a.document(wf)
	if err != nil {
		return nil, err
	}
	goal, err := t.goalNear(ctx, document, t.span)
	if err != nil {
		return nil, err
	}
	exact, err := t.execute(ctx, wf.Name, document, goal)
	if err != nil {
		return nil, err
	}
	t.say("%s", exact)
	all = append(all, exact)
	a.err = runtimeError
	for range t.rounds {
		a.seed++
		if document, err = a.document(wf); err != nil {
			return nil, err
		}
		limits, err := t.limited(ctx, document, goal)
		if err != nil {
			return nil, err
		}
		o, err := t.execute(ctx, wf.Name, document, limits)
		if err != nil {
			return nil, err
		}
		o.seed = a.seed
		t.say("%s", o)
		all = append(all, o)
	}
	return all, nil
}

// limited adds a deadline and a budget to a goal, relative to the current prediction of a plan for it: corrald learns
// from each run.
func (t trial) limited(ctx context.Context, document []byte, goal planning.Goal) (planning.Goal, error) {
	_, made, err := t.makePlan(ctx, api.NewPlan{Workflow: document, Goal: goal, DryRun: true})
	goal.Deadline = corral.Seconds(deadlineOver * float64(made.Makespan))
	goal.Budget = &money.Amount{Unit: made.Cost.Unit, Money: money.Money(budgetOver * float64(made.Cost.Money))}
	return goal, err
}

// weights of money relative to time, from which the goal is chosen.
var weights = []planning.Share{0, 300_000, 500_000, 700_000, 800_000, 900_000, 950_000, 980_000, planning.Whole}

// goalNear returns the goal whose plan ends nearest to the wished time. Limits that this plan keeps do not change it,
// so a deadline and a budget can be added.
func (t trial) goalNear(ctx context.Context, document []byte, wished time.Duration) (best planning.Goal, err error) {
	nearest := math.Inf(1)
	for _, w := range weights {
		goal := planning.Goal{Objective: planning.Tradeoff, Tradeoff: w}
		_, made, err := t.makePlan(ctx, api.NewPlan{Workflow: document, Goal: goal, DryRun: true})
		if err != nil {
			return goal, err
		}
		if far := math.Abs(math.Log(float64(made.Makespan) / float64(wished))); far < nearest {
			best, nearest = goal, far
		}
	}
	return best, nil
}

// makePlan makes a plan for the cluster, from the workflow's estimates, whose errors are part of the experiment.
func (t trial) makePlan(ctx context.Context, in api.NewPlan) (row corral.Plan, made planning.Plan, err error) {
	in.Cluster, in.WorkflowName, in.Sites = t.cluster, "asleep.json", []string{personal.Site}
	in.NoLearn = true
	if row, err = t.cl.CreatePlan(ctx, in, ""); err == nil {
		err = json.Unmarshal(row.Document, &made)
	}
	return row, made, err
}

// execute plans and runs a workflow, and releases its pilots.
func (t trial) execute(ctx context.Context, name string, document []byte, goal planning.Goal) (o outcome, err error) {
	planned, made, err := t.makePlan(ctx, api.NewPlan{Workflow: document, Goal: goal, ForRun: api.ForRun{Auto: true}})
	if err != nil {
		return o, err
	}
	o = outcome{name: name, tasks: len(made.Schedule), goal: goal, predicted: made.Point}
	if planned.State != corral.PlanReady {
		o.trouble = planned.Reason
		return o, nil
	}
	if planned, err = t.cl.ProvisionPlan(ctx, planned.ID); err != nil {
		return o, err
	}
	in := request(document, corral.RunOptions{Clustering: made.Clustering.String()})
	in.Cluster, in.SourceDir = t.cluster, t.dir
	in.Labels = map[string]string{"plan": fmt.Sprint(planned.ID)}
	run, err := t.cl.CreateRun(ctx, in, "")
	if err != nil {
		return o, err
	}
	if run, err = t.finish(ctx, run, planned.ID, &o); err != nil {
		return o, err
	}
	if !run.EndedAt.IsZero() {
		o.took = run.EndedAt.Sub(planned.BeganAt)
	}
	err = t.account(ctx, planned, &o)
	return o, err
}

// finish waits for the run's end. A run without remaining budget would wait indefinitely: it is cancelled.
func (t trial) finish(ctx context.Context, run corral.Run, id corral.PlanID, o *outcome) (corral.Run, error) {
	patient := time.Now().Add(2*time.Duration(o.predicted.Makespan) + 10*time.Second)
	for {
		next, err := t.cl.WaitRun(ctx, run.ID, 2*time.Second)
		if err == nil && next.State.Over() {
			run = next
			break
		}
		if next, err = t.cl.Run(ctx, run.ID); err != nil {
			return run, err
		}
		if next.State.Over() {
			run = next
			break
		}
		if time.Now().After(patient) {
			o.trouble = fmt.Sprintf("%d of %d tasks done", next.Tasks.Done, o.tasks)
			if run, err = t.cl.CancelRun(ctx, run.ID); err != nil {
				return run, err
			}
			break
		}
	}
	if run.State != corral.RunSucceeded && o.trouble == "" {
		o.trouble = strings.TrimSpace(fmt.Sprintf("%s %s", run.State, run.Reason))
	}
	_, err := t.cl.ReleasePlan(ctx, id)
	return run, err
}

// account waits until all pilots of the plan have ended, and adds up their CPU time and the messages of the revisions.
func (t trial) account(ctx context.Context, of corral.Plan, o *outcome) error {
	deadline := time.Now().Add(patience)
	for {
		all, err := t.cl.Glideins(ctx, api.Filter{All: true})
		if err != nil {
			return err
		}
		held, left := holding(all, of.ID)
		if o.held = held; left == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d pilots of plan %d remain", left, of.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	revisions, err := t.cl.PlanRevisions(ctx, of.ID)
	for _, r := range revisions {
		o.revise(r, of.BeganAt)
	}
	return err
}

// holding returns the CPU time that the pilots of a plan held, and how many of them have not ended.
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
