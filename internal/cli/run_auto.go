package cli

// run --auto is plan, provision and run in one: corrald makes a plan for the workflow, asks for its pilots, and runs
// the workflow, its tasks put into jobs as the plan says, under the plan's label. By that label corrald knows which
// run's end releases the plan's pilots, so that nothing hangs on this command: it may be killed at any time. Meanwhile
// corrald revises the plan; this command only shows how.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/plan"
)

// An autoRun makes a run with the pilots that are planned for it.
type autoRun struct {
	runVerbs
	c       *cli.Context
	ask     api.NewPlan // what the plan is to be
	plan    corral.Plan // of which the run is the execution

	predicted corral.Seconds // its makespan
	hours     float64        // its core-hours
}

// create plans and provisions, and creates the run then. A run that would be refused is not planned, and one that is
// refused nevertheless leaves no pilots behind.
func (a *autoRun) create(cl *api.Client, ctx context.Context, in api.NewRun, key string) (corral.Run, error) {
	var err error
	if a.ask, err = a.request(in); err != nil {
		return corral.Run{}, err
	}
	if key == "" {
		return a.begin(cl, ctx, in, "", "")
	}
	r, err := a.begin(cl, ctx, in, key+".plan", key)
	if corral.KindOf(err) == corral.KeyReused { // of the plan's key nobody knows but this command
		return r, corral.ErrorAt(corral.KeyReused, "--key", "%q was used before for another run: with another "+
			"workflow, goal or other flags a run needs another key", key)
	}
	if corral.KindOf(err) == corral.Conflict && a.plan.ID != 0 { // a try with this key failed, and its plan is gone
		return a.begin(cl, ctx, in, "", key)
	}
	return r, err
}

// request is that for the plan of a run. A task without an estimate has one only if it was given.
func (a *autoRun) request(in api.NewRun) (n api.NewPlan, err error) {
	n = api.NewPlan{Cluster: in.Cluster, Workflow: in.Workflow, WorkflowName: in.WorkflowName,
		Clustering: clusteringOf(a.c), Sites: a.c.StringSlice("site"), HostCPUs: a.c.Int("shape")}
	n.ForRun = api.ForRun{Auto: true, NextRun: &api.NextRun{SourceDir: in.SourceDir, Dir: in.Dir, Options: in.Options,
		Labels: in.Labels}}
	n.Learn, n.Algorithm = a.c.Bool("learn"), plan.Algorithm(a.c.String("algorithm"))
	n.Hedge = a.c.Bool("hedge")
	if a.c.IsSet("default-runtime") {
		n.DefaultRuntime = in.Options.DefaultRuntime
	}
	if _, given := in.Labels["plan"]; given {
		return n, corral.ErrorAt(corral.Invalid, "--label", "plan is for the plan that --auto makes")
	}
	if n.Goal, err = goalOf(a.c); err == nil {
		n.Profiles, err = profileVerbs{a.printer}.sourcesOfFlag(a.c)
	}
	return n, err
}

// begin makes the plan, has its pilots asked for, and creates the run. If a command with these keys has done that
// before, the run is the one that it made.
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
	if err := ctx.Err(); err != nil { // a plan alone holds nothing
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
		_, _ = cl.RemovePlan(context.WithoutCancel(ctx), a.plan.ID) // it holds nothing, and nobody asked for it
		return r, err
	}
	a.plan = provisioned
	if r, err = cl.CreateRun(ctx, in, key); err != nil {
		_, undo := cl.ReleasePlan(context.WithoutCancel(ctx), a.plan.ID)
		return r, errors.Join(err, undo)
	}
	return r, nil
}

// predict says what the plan predicts, and makes the run one of it.
func (a *autoRun) predict(in *api.NewRun) error {
	var document plan.Plan
	if err := json.Unmarshal(a.plan.Document, &document); err != nil {
		return fmt.Errorf("reading plan %d: %w", a.plan.ID, err)
	}
	a.predicted, a.hours = document.Makespan, document.CoreHours
	a.say("plan %d: %s, %d cpus at most; %s and %s predicted", a.plan.ID,
		fmt.Sprintf("%d pilot(s)", len(document.Pilots)), document.PeakCPUs, brief(document.Makespan),
		priced(document.Cost))
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["plan"] = fmt.Sprint(a.plan.ID)
	in.Labels, in.Options.Clustering = labels, document.Clustering.String()
	return nil
}

// clusteringOf is the clustering that was asked for, empty if that is left to the planner.
func clusteringOf(c *cli.Context) string {
	if c.IsSet("clustering") {
		return c.String("clustering")
	}
	return ""
}

// beside returns a view that shows the revisions of the plan, as they come, beside what another shows of the run. Of a
// run without a plan it is the other.
func (a *autoRun) beside(cl *api.Client, of progress.View) progress.View {
	if a.plan.ID == 0 {
		return of
	}
	return &revisionView{View: of, auto: a, cl: cl}
}

// A revisionView prints a line for each revision. One that cannot be had now is printed later.
type revisionView struct {
	progress.View
	auto  *autoRun
	cl    *api.Client
	seen  int
	asked time.Time // when corrald was asked for revisions
}

// A plan is looked at once a second, so that asking more often tells nothing new.
const revisionPeriod = time.Second

// Show implements progress.View.
func (v *revisionView) Show(ctx context.Context, r corral.Run, now time.Time) {
	if now.Sub(v.asked) >= revisionPeriod || r.State.Over() {
		v.asked = now
		v.news(ctx)
	}
	v.View.Show(ctx, r, now)
}

// news prints the revisions that were not printed yet.
func (v *revisionView) news(ctx context.Context) {
	all, err := v.cl.PlanRevisions(ctx, v.auto.plan.ID)
	if err == nil && len(all) > v.seen {
		v.View.Close() // what it shows stays above
		for _, rev := range all[v.seen:] {
			v.auto.say("plan %d, revision %d: %s", rev.Plan, rev.Number, revisionLine(rev))
		}
		v.seen = len(all)
	}
}

// revisionLine is a revision in one line: what, and why.
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

// compare puts what happened beside what was predicted. Both count from the plan's beginning.
func (a *autoRun) compare(cl *api.Client, r corral.Run) {
	if a.plan.ID == 0 || !r.State.Over() {
		return
	}
	took := corral.Seconds(r.EndedAt.Sub(a.plan.BeganAt))
	text := fmt.Sprintf("plan %d: %s predicted, %s taken (%+.0f %%)", a.plan.ID, brief(a.predicted), brief(took),
		100*(float64(took)/float64(max(a.predicted, 1))-1))
	if held, err := a.held(cl); err == nil {
		text += fmt.Sprintf("; %.4g core-hours predicted, %.4g held", a.hours, held)
	}
	a.say("%s", text)
}

// held is how many core-hours the plan's pilots have held until now.
func (a *autoRun) held(cl *api.Client) (hours float64, err error) {
	ctx := context.WithoutCancel(a.c.Context)
	pilots, err := cl.Glideins(ctx, api.Filter{All: true})
	for _, g := range pilots {
		if g.Labels["plan"] != fmt.Sprint(a.plan.ID) {
			continue
		}
		for _, j := range g.Attempts {
			end := j.EndedAt
			if j.Live() {
				end = time.Now()
			}
			if !j.StartedAt.IsZero() {
				hours += float64(g.Hosts*g.CPUs) * max(0, end.Sub(j.StartedAt).Hours())
			}
		}
	}
	return hours, err
}
