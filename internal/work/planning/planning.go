// Package planning makes corrald's plans. It gathers what is known about a workflow's tasks, sites, a cluster and its
// present workers, turns it into the planner's problem by the rules of package provision, and calls the planner. It may
// take long, runs outside of transactions, and changes nothing.
package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A Desk makes plans.
type Desk struct {
	db       *store.DB
	clusters *admission.Clusters // source of the present workers
	runs     provision.Runs      // source of unfinished runs
	queues   Queues              // source of the jobs in sites' queues
	machine  corral.SiteQueue    // this machine, described as a queue of a site without a batch system
	seats    chan struct{}       // one is taken while the planner works
}

// mostPlanning is the maximum number of plans made at a time. Each keeps all processors busy, so more of them would
// only take longer and delay corrald's other work.
const mostPlanning = 2

// seek makes a plan, once fewer than mostPlanning are being made. If ctx ends, the error is its cause.
func (d *Desk) seek(ctx context.Context, q algorithm.Question, in api.NewPlan) (*plan.Plan, error) {
	select {
	case d.seats <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.seats }()
	return answered(ctx, q, in)
}

// NewDesk returns a desk.
func NewDesk(db *store.DB, clusters *admission.Clusters, runs provision.Runs, queues Queues,
	machine corral.SiteQueue) *Desk {
	return &Desk{db, clusters, runs, queues, machine, make(chan struct{}, mostPlanning)}
}

// Draft makes a plan for pilots that join a cluster, based on what is known now, and writes it to row, whose owner must
// be set. It returns the schedule separately if it is too long for the row, unless this is a dry run. Errors are those
// of the request: Invalid, NotFound or Unsatisfiable, with their place. Draft removes the workflow from the request.
func (d *Desk) Draft(ctx context.Context, in *Request, cluster corral.Cluster, sites []corral.Site,
	row *corral.Plan) (*store.Schedule, error) {
	made, err := d.make(ctx, in, cluster, sites, row.Owner)
	if err != nil {
		return nil, err
	}
	row.Cluster, row.ClusterName = cluster.ID, cluster.Name
	row.Sites = map[string]corral.SiteID{}
	for _, s := range sites {
		row.Sites[s.Name] = s.ID
	}
	return write(ctx, d.db, row, made, in.DryRun)
}

// write fills the row of a plan, and writes its schedule separately if it is too long for the row.
func write(ctx context.Context, db *store.DB, row *corral.Plan, made *plan.Plan, dryRun bool) (*store.Schedule,
	error) {
	schedule, err := detach(db, made, dryRun)
	if err != nil {
		return nil, err
	}
	if err := fill(row, made); err != nil {
		return nil, errors.Join(err, schedule.Discard(ctx))
	}
	return schedule, nil
}

// detach removes the schedule from a plan, or from its nearest plan, if it is too long for the row.
func detach(db *store.DB, made *plan.Plan, dryRun bool) (*store.Schedule, error) {
	if made.Nearest != nil {
		made = made.Nearest
	}
	switch {
	case len(made.Schedule) <= plan.MostWithin:
		return nil, nil
	case dryRun:
		return nil, made.Detach(io.Discard)
	}
	return db.NewSchedule(made.Detach)
}

// make makes a plan for an owner.
func (d *Desk) make(ctx context.Context, in *Request, cluster corral.Cluster, sites []corral.Site,
	owner string) (*plan.Plan, error) {
	subject, err := d.subject(ctx, in)
	if err != nil {
		return nil, err
	}
	experience, raised, err := d.experience(ctx, in.NewPlan, owner, subject.flow)
	if err != nil {
		return nil, err
	}
	if in.Run == 0 { // estimates of the rest of a run are corrected by its own tasks' runtimes instead
		experience.Speeds = provision.Speeds(experience, names(sites))
	}
	problem, transfers, basis, err := d.problem(ctx, subject, experience, cluster)
	if err != nil {
		return nil, err
	}
	facts, err := d.facts(ctx, sites, in.WhatIf)
	if err != nil {
		return nil, err
	}
	var left []string
	problem.Cluster, left = provision.Leaving(problem.Cluster, facts, in.Goal.Budget != nil)
	share := montecarlo.WaitShare(in.Goal, len(problem.Work.Tasks))
	var assumed []string
	if problem.Sites, assumed = provision.Sites(facts, provision.CautionOf(in.Goal, share),
		time.Now()); len(problem.Sites) == 0 {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "sites", "no site accepts pilots: create one with "+
			"corral site create, or see in corral site list why the existing ones do not")
	}
	provision.Join(problem.Sites, problem.Cluster)
	transfers.Carry(&problem)
	reasons := slices.Concat(basis.Remarks, raised, provision.Pace(&problem, experience.Speeds))
	said, err := provision.WhatIf(problem.Sites, in.WhatIf)
	if err == nil {
		err = provision.SameUnit(problem.Sites, in.Goal.Budget)
	}
	if err != nil {
		return nil, err
	}
	opts, err := options(in.NewPlan)
	if err != nil {
		return nil, err
	}
	asked := in.NewPlan
	question, seen, err := d.question(ctx, problem, &asked, facts, basis.Whole)
	if err != nil {
		return nil, err
	}
	question.Options = opts
	made, err := d.seek(ctx, question, asked)
	if err != nil {
		return nil, err
	}
	made.Reasons = slices.Concat(made.Reasons, provision.Travelling(problem.Work, made), reasons, left, assumed, said,
		seen)
	complete(made, in.NewPlan, sites, plan.Evidence{Estimates: basis.Estimates, Priors: priors(facts, in.WhatIf)})
	return made, nil
}

// priors describes the assumed waits, unless the request gives the waits.
func priors(facts []provision.Facts, given plan.WhatIf) []string {
	if given.GivesWaits() {
		return nil
	}
	return provision.Priors(facts)
}

// complete adds values from the request to a plan, and the sources of its estimates and waits.
func complete(made *plan.Plan, in api.NewPlan, sites []corral.Site, known plan.Evidence) {
	made.Asked = asked(in, sites)
	for q := made; q != nil; q = q.Nearest {
		q.Estimates, q.Priors = known.Estimates, known.Priors
		if q.Assumed != nil {
			q.Assumed.Run = in.Run
		}
	}
	if in.Marginal {
		made.Marginal = plan.Marginals(made.Front)
	}
}

// partsToLetGo is the minimum number of pilots among which the hosts of a revisable plan are divided. The hosts of one
// pilot start and end together, and hosts that cannot be released cost money.
const partsToLetGo = 4

// asked returns the parts of a request with which revisions and the plan's run must comply. sites are used only if the
// request names sites.
func asked(in api.NewPlan, sites []corral.Site) plan.Asked {
	a := plan.Asked{Shape: in.HostCPUs, WhatIf: in.WhatIf, NoLearn: in.NoLearn}
	if len(in.Sites) > 0 {
		a.Sites = names(sites)
	}
	return a
}

func names(sites []corral.Site) (all []string) {
	for _, s := range sites {
		all = append(all, s.Name)
	}
	return all
}

// problem returns the planner's problem without its sites, the costs of transferring files, and the basis of the
// estimates, with remarks about the rest of the problem.
func (d *Desk) problem(ctx context.Context, s subject, experience provision.Experience,
	cluster corral.Cluster) (problem plan.Problem, transfers provision.Transfers, basis provision.Basis, err error) {
	if s.run.ID != 0 {
		experience.Rest = provision.Unfinished{Run: s.run, Progress: s.progress}.Rest()
		experience.Guess = cmp.Or(time.Duration(s.run.Options.DefaultRuntime), experience.Guess)
	}
	var learned []string
	if problem.Work, basis, err = provision.Work(s.flow, experience); err == nil {
		problem.Cluster, transfers, learned, err = d.learned(ctx, cluster, s.streamed)
	}
	if err != nil {
		return problem, nil, basis, err
	}
	basis.Remarks, problem.Errors = append(basis.Remarks, learned...), basis.Errors
	if s.run.ID == 0 {
		problem.Present, err = d.present(ctx, cluster)
		return problem, transfers, basis, err
	}
	left, err := d.left(ctx, s, problem, transfers, plan.Guesses(basis.Estimates))
	if err != nil {
		return left, nil, basis, err
	}
	left.Errors = basis.Errors
	basis.Remarks = append(basis.Remarks, fmt.Sprintf("it is for the rest of run %d: %d of %d tasks", s.run.ID,
		len(left.Work.Tasks), len(problem.Work.Tasks)))
	return left, transfers, basis, nil
}

// options returns the planner's options.
func options(in api.NewPlan) (planner.Options, error) {
	opts := planner.Options{Shape: in.HostCPUs, Seed: in.Seed}
	if in.Auto {
		opts.Parts = partsToLetGo
	}
	if in.Run != 0 { // its tasks have already been assigned to jobs
		opts.Clustering = &clustering.Rule{}
	}
	if in.Clustering == "" {
		return opts, nil
	}
	asked, err := clustering.Parse(in.Clustering)
	opts.Clustering = &asked
	return opts, err
}

// fill fills the row with a plan.
func fill(row *corral.Plan, made *plan.Plan) error {
	if err := made.Encode(row); err != nil {
		return err
	}
	row.Workflow, row.State = made.Workflow, corral.PlanReady
	if !made.Feasible {
		row.State, row.Reason = corral.PlanInfeasible, made.Reasons[0]
	}
	return nil
}
