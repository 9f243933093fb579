package cli

// run --auto combines plan, provision and run: corrald makes a plan for the workflow, requests the plan's pilots, and
// runs the workflow with the plan's clustering and label. Because of the label, corrald releases the plan's pilots at
// the end of the run, so that the release does not depend on this command, which may be killed at any time. corrald
// revises the plan while the run is in progress; this command only shows the revisions.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// An autoRun creates a run with planned pilots.
type autoRun struct {
	runVerbs
	c    *cli.Context
	ask  api.NewPlan // the request for the plan
	plan corral.Plan // the plan that the run carries out

	document *plan.Plan // the plan's document
}

// create makes and provisions a plan, and then creates the run. It makes no plan for a request that would be refused;
// if the run is refused nevertheless, no pilots are left behind.
func (a *autoRun) create(cl *api.Client, ctx context.Context, in api.NewRun, key string) (corral.Run, error) {
	var err error
	if a.ask, err = a.request(in); err != nil {
		return corral.Run{}, err
	}
	if key == "" {
		return a.begin(cl, ctx, in, "", "")
	}
	r, err := a.begin(cl, ctx, in, key+".plan", key)
	if corral.KindOf(err) == corral.KeyReused { // the plan's key is internal to this command
		return r, corral.ErrorAt(corral.KeyReused, "--key", "%q was used before for another run: another "+
			"workflow, goal or flags need another key", key)
	}
	if corral.KindOf(err) == corral.Conflict && a.plan.ID != 0 { // an earlier attempt with this key failed
		return a.begin(cl, ctx, in, "", key)
	}
	return r, err
}

// request returns the request for the plan of a run. The default runtime of tasks without an estimate applies only if
// it was specified.
func (a *autoRun) request(in api.NewRun) (n api.NewPlan, err error) {
	n = api.NewPlan{Cluster: in.Cluster, Workflow: in.Workflow, WorkflowName: in.WorkflowName,
		Clustering: clusteringOf(a.c), Sites: a.c.StringSlice("site"), HostCPUs: a.c.Int("shape")}
	n.ForRun = api.ForRun{Auto: true, NextRun: &api.NextRun{SourceDir: in.SourceDir, Dir: in.Dir, Options: in.Options,
		Labels: in.Labels}}
	n.NoLearn, n.Algorithm = a.c.Bool("no-learn"), plan.Algorithm(a.c.String("algorithm"))
	n.Hedge = a.c.Bool("hedge")
	if a.c.IsSet("default-runtime") {
		n.DefaultRuntime = in.Options.DefaultRuntime
	}
	if _, given := in.Labels["plan"]; given {
		return n, corral.ErrorAt(corral.Invalid, "--label", "plan is reserved for the plan that --auto makes")
	}
	if n.Goal, err = goalOf(a.c); err == nil {
		a.sayDeadline(n.Goal.DeadlineAt)
		n.Goal.Bounds, err = boundsOf(a.c)
	}
	if err == nil {
		n.Profiles, err = profileVerbs{a.printer}.sourcesOfFlag(a.c)
	}
	return n, err
}

// begin makes the plan, requests its pilots, and creates the run. If an earlier command with the same keys did this,
// begin returns the existing run.
func (a *autoRun) begin(cl *api.Client, ctx context.Context, in api.NewRun, planKey,
	key string) (r corral.Run, err error) {
	if a.plan, err = cl.CreatePlan(ctx, a.ask, planKey); err != nil {
		return r, err
	}
	if a.plan.State == corral.PlanInfeasible {
		return r, corral.Errorf(corral.Unsatisfiable, "%s", a.plan.Reason)
	}
	if err := a.predict(&in); err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil { // a plan by itself holds no resources
		return r, err
	}
	ctx, cancel := outlasting(ctx)
	defer cancel()
	provisioned, err := cl.ProvisionPlan(ctx, a.plan.ID)
	if err != nil {
		if planKey != "" && corral.KindOf(err) == corral.Conflict {
			if r, again := cl.CreateRun(ctx, in, key); again == nil {
				a.plan, err = cl.Plan(ctx, a.plan.ID)
				return r, err
			}
		}
		_, _ = cl.RemovePlan(context.WithoutCancel(ctx), a.plan.ID) // the plan holds no resources
		return r, err
	}
	a.plan = provisioned
	if r, err = cl.CreateRun(ctx, in, key); err != nil {
		_, undo := cl.ReleasePlan(context.WithoutCancel(ctx), a.plan.ID)
		return r, errors.Join(err, undo)
	}
	return r, nil
}

// predict prints the plan's prediction, and links the run's request to the plan.
func (a *autoRun) predict(in *api.NewRun) error {
	document, err := plan.Decode(a.plan)
	if err != nil {
		return err
	}
	a.document = document
	a.say("plan %d: %s, %d cpus at most; %s and %s predicted", a.plan.ID,
		fmt.Sprintf("%d pilot(s)", len(document.Pilots)), document.PeakCPUs, brief(document.Makespan),
		priced(document.Cost))
	for _, e := range document.Estimates {
		if e.Source == plan.Guessed {
			a.say("plan %d: %s", a.plan.ID, e)
		}
	}
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["plan"] = fmt.Sprint(a.plan.ID)
	in.Labels, in.Options.Clustering = labels, document.Clustering.String()
	return nil
}

// clusteringOf returns the requested clustering, or "" if the planner should choose.
func clusteringOf(c *cli.Context) string {
	if c.IsSet("clustering") {
		return c.String("clustering")
	}
	return ""
}

// beside returns a view that adds the revisions of the plan to another view of the run; without a plan it returns the
// other view.
func (a *autoRun) beside(cl *api.Client, of progress.View) progress.View {
	if a.plan.ID == 0 {
		return of
	}
	return &revisionView{View: of, auto: a, cl: cl}
}

// A revisionView prints a line for each revision. If corrald does not answer, the revision is printed later.
type revisionView struct {
	progress.View
	auto  *autoRun
	cl    *api.Client
	seen  int
	asked time.Time // time of the last request for revisions
}

// corrald revises a plan at most once a second.
const revisionPeriod = time.Second

// Show implements progress.View.
func (v *revisionView) Show(ctx context.Context, r corral.Run, now time.Time) {
	if now.Sub(v.asked) >= revisionPeriod || r.State.Over() {
		v.asked = now
		v.news(ctx)
	}
	v.View.Show(ctx, r, now)
}

// news prints the new revisions.
func (v *revisionView) news(ctx context.Context) {
	all, err := v.cl.PlanRevisions(ctx, v.auto.plan.ID)
	if err == nil && len(all) > v.seen {
		v.View.Close() // its last lines remain above
		for _, rev := range all[v.seen:] {
			v.auto.say("plan %d, revision %d: %s", rev.Plan, rev.Number, revisionLine(rev))
		}
		v.seen = len(all)
	}
}

// revisionLine describes a revision and its reasons on one line.
func revisionLine(r corral.Revision) string {
	var what []string
	if n := len(r.Added); n > 0 {
		what = append(what, fmt.Sprintf("%d pilot(s) more", n))
	}
	if n := len(r.Dropped); n > 0 {
		what = append(what, fmt.Sprintf("%d pilot(s) less", n))
	}
	return strings.Join(append(what, r.Why()...), "; ")
}

// compare prints the actual values beside the predicted values, and what a budget left undone. Times are relative to
// the start of the plan. If every task was done, but the deadline or the budget was missed, the error is of kind
// Missed.
func (a *autoRun) compare(cl *api.Client, r corral.Run) error {
	if a.plan.ID == 0 || !r.State.Over() {
		return nil
	}
	goal, predicted := a.document.Goal.From(a.plan.BeganAt), a.document.Makespan
	took := corral.Seconds(r.EndedAt.Sub(a.plan.BeganAt))
	text := fmt.Sprintf("plan %d: %s predicted, %s taken (%+.0f %%)", a.plan.ID, brief(predicted), brief(took),
		100*(float64(took)/float64(max(predicted, 1))-1))
	spent := a.billed(cl)
	if spent != nil {
		text += fmt.Sprintf("; %s predicted, %s billed", a.document.Cost.Brief(), spent.Brief())
	}
	a.say("%s", text)
	if left := r.Tasks.Total - r.Tasks.Done; r.State == corral.RunStalled && goal.Budget != nil && left > 0 {
		a.say("plan %d: the budget of %s leaves %d of %d tasks undone; to go on: `corral plan --run %d --budget "+
			"AMOUNT`, `corral plan apply PLAN` and `corral runs resume %d`", a.plan.ID, *goal.Budget, left,
			r.Tasks.Total, r.ID, r.ID)
	}
	if r.State != corral.RunSucceeded {
		return nil
	}
	return missed(r.ID, goal, took, spent)
}

// missed returns an error of kind Missed if a completed run exceeded the deadline or the budget of its plan's goal. The
// cost is nil if it is not known.
func missed(id corral.RunID, goal plan.Goal, took corral.Seconds, spent *cost.Amount) error {
	var how []string
	if goal.Deadline > 0 && took > goal.Deadline {
		how = append(how, fmt.Sprintf("it took %s, longer than the deadline of %s", brief(took), goal.Deadline))
	}
	if goal.Budget != nil && spent != nil && spent.Money > goal.Budget.Money {
		how = append(how, fmt.Sprintf("it cost %s, more than the budget of %s", spent, goal.Budget))
	}
	if len(how) == 0 {
		return nil
	}
	return corral.ErrorAt(corral.Missed, fmt.Sprintf("run %d", id), "all of its tasks are done, but %s",
		strings.Join(how, "; and "))
}

// billed returns what the plan's pilots have cost until now, by the ledgers of their sites; nil if that is not known.
func (a *autoRun) billed(cl *api.Client) *cost.Amount {
	ctx := context.WithoutCancel(a.c.Context)
	pilots, err := cl.Glideins(ctx, api.Filter{All: true, Labels: map[string]string{"plan": fmt.Sprint(a.plan.ID)}})
	if err != nil {
		return nil
	}
	return report.Billed(a.plan.ID, a.document.Cost.Unit, ledgersOf(ctx, cl, pilots))
}
