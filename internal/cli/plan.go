package cli

// plan makes corrald create a plan: which pilots to request so that a workflow meets its deadline or its budget.
// plan apply requests the pilots. Both verbs use the plan that corrald stores; the plan's document is the planner's
// result, which -o json prints.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

var plans = noun[corral.PlanID]{name: "plan", key: idKey[corral.PlanID]}

// planVerbs are the verbs for plans, including simulate.
type planVerbs struct{ *printer }

func (v planVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "plan", Category: workflows,
		Flags: append(slices.Concat(goalFlags(), estimateFlags(), pilotFlags(), planKindFlags()),
			clusterFlag(),
			&cli.StringFlag{Name: "run", Usage: "plan the rest of run `RUN`, in place of a workflow"},
			durationFlag("default-runtime", 0, "assume `D` for a task without an estimate"),
			&cli.StringFlag{Name: "clustering",
				Usage: "`HOW` tasks become jobs: none, horizontal=N, runtime=D, label or vertical " +
					"(default, and auto: the planner chooses)"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed random numbers with `N`"},
			errorFlag(),
			&cli.BoolFlag{Name: "compare",
				Usage: "compare the plan with those of other algorithms, and with policies that only react"},
			&cli.BoolFlag{Name: "explain",
				Usage: "print the reasons, the effective limits, and the cost of other plans"},
			&cli.BoolFlag{Name: "dry-run", Usage: "show the plan without storing it"},
			&cli.BoolFlag{Name: "marginal", Usage: "print how much time further cpus save, and their cost"},
			&cli.StringFlag{Name: "price", Usage: "assume `AMOUNT/PER` at all sites, such as 0.04USD/cpu-hour"},
			&cli.StringFlag{Name: "billing",
				Usage: "assume that each started `PERIOD` is billed: 1h, 1m, 1s, 10m-minimum"},
			durationFlag("overhead", 0,
				"assume `D` from the request for a pilot to its workers; may be 0"),
			durationFlag("queue-wait", 0,
				"assume that each pilot waits `D` in its queue, in place of the predicted wait"),
			&cli.BoolFlag{Name: "apply", Usage: "request the plan's pilots at once, like `corral plan apply`"},
			applyWaitFlag(), timeoutFlag(),
			plotFlag(planPlot), scheduleOutFlag(), keyFlag()),
		Action: v.byKind(creating(v.newPlan, createPlan,
			func(c *cli.Context, cl *api.Client, made corral.Plan) error {
				all, err := writeSchedule(c, cl, made)
				if all {
					err = errors.Join(err, plotPlan(c, cl, made), infeasible(made))
				} else {
					err = errors.Join(err, plotPlan(c, cl, made), v.showNew(made, c.Bool("explain")))
				}
				if err != nil || !c.Bool("wait") || made.State != corral.PlanProvisioned {
					return err
				}
				return v.awaitProvisioned(c, cl, made.ID)
			})),
		Subcommands: []*cli.Command{
			planTable.listVerb(v.printer, planRows),
			v.applyCommand(),
			plans.verb("show", v.showKept, plotFlag(planPlot), scheduleOutFlag()),
			v.validateCommand(),
			plans.verb("revisions", printing((*api.Client).PlanRevisions, revisionTable.many(v.printer))),
			plans.verb("release", func(c *cli.Context, cl *api.Client, id corral.PlanID) error {
				row, err := releasePlan(c, cl, id)
				if err != nil {
					return err
				}
				return v.showRow(row)
			}, &cli.BoolFlag{Name: "wait", Usage: "return when none of its pilots is left"}, timeoutFlag()),
			plans.verb("remove", printing((*api.Client).RemovePlan, v.showRow)),
			plans.verb("history", printing((*api.Client).PlanHistory, entryTable.many(v.printer))),
		},
	}
}

// pilotFlags returns the flags that restrict the pilots of a plan.
func pilotFlags() []cli.Flag {
	return append(boundFlags(),
		&cli.StringSliceFlag{Name: "site", Usage: "use only site `S`; may be repeated"},
		&cli.IntFlag{Name: "shape", Usage: "give each pilot's hosts `C` cpus (default: the planner chooses)"},
		&cli.StringFlag{Name: "algorithm", Usage: "find the plan with `NAME`: staircase, moga, greedy, var or " +
			"combined, or auto, which simulates them all (default: auto for few tasks in known queues, otherwise " +
			"staircase); an ensemble: rehearsal, spss, " +
			"wa-dpds, dpds or spds (default: rehearsal)"},
		&cli.BoolFlag{Name: "hedge", Usage: "request pilots at another site, too, and withdraw the later ones"})
}

// goalFlags returns the flags for the goal of a plan.
func goalFlags() []cli.Flag {
	return []cli.Flag{
		deadlineFlag("end within", ""),
		&cli.StringFlag{Name: "budget", Usage: "cost at most `AMOUNT`, such as 40ch, 12USD or 500SU"},
		&cli.StringFlag{Name: "objective", Usage: "minimize `WHAT`: makespan, cost, cpus or tradeoff (default: " +
			"cost with a deadline, makespan with a budget, else tradeoff)"},
		&cli.StringFlag{Name: "tradeoff", Value: "0.5",
			Usage: "weigh cost by `A` and makespan by 1 − A: 0 only makespan, 1 only cost"},
		&cli.Float64Flag{Name: "confidence", Usage: "meet the deadline, and the budget, in a share `P` of " +
			"simulated outcomes; without either: plan with waits that this share does not exceed"},
	}
}

// goalOf reads the values of goalFlags.
func goalOf(c *cli.Context) (plan.Goal, error) {
	alpha, err := plan.ParseShare(cmp.Or(c.String("tradeoff"), "0")) // some commands have no such flag
	g := plan.Goal{Objective: plan.Objective(c.String("objective")), Tradeoff: alpha,
		Confidence: c.Float64("confidence")}
	switch {
	case err != nil:
		return g, corral.ErrorAt(corral.Invalid, "--tradeoff", "%w", err)
	case alpha > plan.Whole:
		return g, corral.ErrorAt(corral.Invalid, "--tradeoff", "%s is not between 0 and 1", alpha)
	case c.IsSet("confidence") && !(g.Confidence > 0 && g.Confidence < 1):
		return g, corral.ErrorAt(corral.Invalid, "--confidence", "%g is not between 0 and 1", g.Confidence)
	case c.IsSet("tradeoff") && g.Objective != "" && g.Objective != plan.Tradeoff:
		return g, corral.ErrorAt(corral.Invalid, "--tradeoff", "it weighs cost against makespan for --objective "+
			"tradeoff, not for %s: leave one of the two out", g.Objective)
	case c.IsSet("tradeoff"):
		g.Objective = plan.Tradeoff
	}
	if c.IsSet("deadline") {
		var err error
		if g.Deadline, g.DeadlineAt, err = deadlineOf(c, time.Now()); err != nil {
			return g, err
		}
	}
	if c.IsSet("budget") {
		amount, err := cost.ParseAmount(c.String("budget"))
		if err != nil {
			return g, corral.ErrorAt(corral.Invalid, "--budget", "%w", err)
		}
		g.Budget = &amount
	}
	return g, nil
}

func (v planVerbs) newPlan(c *cli.Context) (api.NewPlan, error) {
	file := c.Args().First()
	n := api.NewPlan{Cluster: c.String("cluster"), WorkflowName: file, Sites: c.StringSlice("site"),
		HostCPUs: c.Int("shape"), Clustering: c.String("clustering"), Seed: c.Uint64("seed")}
	n.DefaultRuntime, n.NoLearn = corral.Seconds(c.Duration("default-runtime")), c.Bool("no-learn")
	n.Error, n.Compare = c.String("error"), c.Bool("compare")
	n.Algorithm, n.Price, n.Billing = plan.Algorithm(c.String("algorithm")), c.String("price"), c.String("billing")
	n.Marginal, n.DryRun, n.Hedge = c.Bool("marginal"), c.Bool("dry-run"), c.Bool("hedge")
	if c.IsSet("overhead") {
		overhead := corral.Seconds(c.Duration("overhead"))
		n.Overhead = &overhead
	}
	if c.IsSet("queue-wait") {
		wait := corral.Seconds(c.Duration("queue-wait"))
		n.QueueWait = &wait
	}
	n.Apply = c.Bool("apply")
	err := checkApply(c)
	if err != nil {
		return n, err
	}
	if n.Profiles, err = profileVerbs(v).sourcesOfFlag(c); err != nil {
		return n, err
	}
	if n.Goal, err = goalOf(c); err != nil {
		return n, err
	}
	if n.Goal.Bounds, err = boundsOf(c); err != nil {
		return n, err
	}
	v.sayDeadline(n.Goal.DeadlineAt)
	switch {
	case c.IsSet("shape") && n.HostCPUs < 1:
		return n, corral.ErrorAt(corral.Invalid, "--shape", "%d is not a number of cpus: a host has 1 or more",
			n.HostCPUs)
	case c.IsSet("default-runtime") && n.DefaultRuntime <= 0:
		return n, corral.ErrorAt(corral.Invalid, "--default-runtime", "%s is not a positive duration", n.DefaultRuntime)
	}
	if (file == "") != c.IsSet("run") {
		return n, corral.Errorf(corral.Invalid, "want either a WORKFLOW or --run RUN; see `%s --help`",
			c.Command.HelpName)
	}
	if file == "" {
		n.Run, err = idKey[corral.RunID]("--run", c.String("run"))
		return n, err
	}
	n.Workflow, err = v.readWorkflowFor(c, file)
	return n, err
}

// readWorkflowFor reads the workflow to be planned and returns it in WfFormat.
func (v planVerbs) readWorkflowFor(c *cli.Context, file string) ([]byte, error) {
	w, err := v.readWorkflow(c.Context, file, false)
	if errors.Is(err, fs.ErrNotExist) && input.Nearest(namesIn(c.Command.Subcommands), file) != "" {
		err = unknownCommand(c.Command.HelpName, c.Command.Subcommands, file)
	}
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	err = wfformat.Write(&document, w)
	return document.Bytes(), err
}

// showNew prints a new plan. If its goal is out of reach, it prints the nearest feasible plan and returns an error.
func (v planVerbs) showNew(row corral.Plan, explain bool) error {
	if err := v.show(row, explain); err != nil {
		return err
	}
	if row.State == corral.PlanInfeasible {
		return infeasible(row)
	}
	document, _, err := documentOf(row)
	if err == nil && row.ID != 0 && row.State == corral.PlanReady && len(document.Pilots) > 0 { // a dry run has no id
		v.say("request its pilots with `corral plan apply %d`", row.ID)
	}
	return err
}

// infeasible returns an error for a plan whose goal is out of reach, and nil for other plans.
func infeasible(row corral.Plan) error {
	if row.State != corral.PlanInfeasible {
		return nil
	}
	return printedError{corral.Errorf(corral.Unsatisfiable, "%s", row.Reason)}
}

// show prints a plan: its figures, its pilots and, with explain, the reasons.
func (v planVerbs) show(row corral.Plan, explain bool) error {
	document, err := plan.Decode(row)
	if err != nil {
		return err
	}
	if row.ID == 0 && v.quiet { // a dry run has no id
		return nil
	}
	if err := planTable.show(v.printer, planRow{row, document, document.Summary()}); err != nil {
		return err
	}
	if v.forPeople() {
		return v.showParts(document, explain)
	}
	return nil
}

// showParts prints the tables of a plan: its pilots, or the pilots of the nearest feasible plan, and with explain the
// reasons.
func (v planVerbs) showParts(document *plan.Plan, explain bool) error {
	fmt.Fprintln(v.out)
	pilots := document.Pilots
	if near := document.Nearest; near != nil {
		fmt.Fprintln(v.out, "the nearest plan that is possible:")
		if err := pointTable.show(v.printer, near.Point); err != nil {
			return err
		}
		fmt.Fprintln(v.out)
		pilots = near.Pilots
	}
	if !document.Feasible && len(pilots) == 0 {
		return nil // the error contains the reason
	}
	err := v.listPilots(pilots)
	if err == nil && len(document.Contest) > 0 && len(document.Comparison) == 0 {
		fmt.Fprintln(v.out, "\nthe plans of all algorithms, simulated in the current queues:")
		err = v.showContest(document.Contest)
	}
	if err == nil && len(document.Comparison) > 0 {
		err = v.showComparison(document)
	}
	if err == nil {
		err = v.showMarginal(document.Marginal)
	}
	if err != nil || !explain {
		return err
	}
	fmt.Fprintln(v.out)
	for _, reason := range document.Reasons {
		fmt.Fprintln(v.out, "-", reason)
	}
	for _, limit := range document.Limits {
		fmt.Fprintln(v.out, "- cut by", limit)
	}
	if len(document.Front) == 0 {
		return nil
	}
	fmt.Fprintln(v.out, "\nplans that were considered; no other is both sooner and cheaper:")
	return pointTable.list(v.printer, few(document.Front, shownPoints))
}

// shownPoints is the maximum number of points of a front that are printed; JSON contains all.
const shownPoints = 8

// few returns at most n elements of a list, evenly spaced, with the first and the last.
func few[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	some := make([]T, n)
	for i := range some {
		some[i] = list[i*(len(list)-1)/(n-1)]
	}
	return some
}

// showRevisions prints the revisions of a plan.
func (v planVerbs) showRevisions(c *cli.Context, cl *api.Client, id corral.PlanID) error {
	all, err := cl.PlanRevisions(c.Context, id)
	if err != nil || len(all) == 0 {
		return err
	}
	fmt.Fprintln(v.out)
	return revisionTable.list(v.printer, all)
}
