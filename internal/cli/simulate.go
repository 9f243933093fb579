package cli

// simulate runs many simulations of a plan in this program, not in corrald, because the plan contains the distributions
// of its outcomes. A plan file contains the output of `corral plan -o json`, or only the plan in that output.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// errorFlag sets how runtimes differ from their estimates in simulations.
func errorFlag() cli.Flag {
	return &cli.StringFlag{Name: "error", Usage: "simulate runtimes that differ from their estimates by `LAW`: 0, " +
		"uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2 (default: as in the plan, or learned, or else " +
		"lognormal:0.2)"}
}

// maxSimulated is the maximum number of outcomes, which determines a probability to a thousandth.
const maxSimulated = 1_000_000

func (v planVerbs) simulateCommand() *cli.Command {
	return &cli.Command{
		Name: "simulate", Category: workflows,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "runs", Value: 1000, Usage: "simulate `N` outcomes; for 1, print its record"},
			errorFlag(),
			&cli.Float64Flag{Name: "waits", Value: 1, Usage: "multiply all waits in queues by `X`"},
			&cli.StringFlag{Name: "background", Usage: "do not draw waits: simulate pilots among the jobs of `WHAT`, " +
				"a trace in SWF, or lublin:LOAD"},
			&cli.StringFlag{Name: "queue-policy", Usage: "serve that queue by `POLICY`: fcfs, easy or conservative " +
				"(default: easy)"},
			&cli.IntFlag{Name: "cpus", Usage: "give the machine with that queue `N` cpus (default: as the trace's " +
				"header says)"},
			deadlineFlag("count outcomes that end within", " (default: the plan's)"),
			&cli.StringFlag{Name: "budget",
				Usage: "count outcomes that cost at most `AMOUNT` (default: the plan's budget)"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "seed random numbers with `N`"},
			scheduleInFlag(),
		},
		Action: v.simulate,
	}
}

func (v planVerbs) simulate(c *cli.Context) error {
	runs, waits := c.Int("runs"), c.Float64("waits")
	switch {
	case runs < 1 || runs > maxSimulated:
		return corral.ErrorAt(corral.Invalid, "--runs", "%d is not between 1 and %d", runs, maxSimulated)
	case !(waits > 0 && waits <= 1000):
		return corral.ErrorAt(corral.Invalid, "--waits", "%g is not a factor above 0, of at most 1000", waits)
	}
	goal, err := goalOf(c)
	if err != nil {
		return err
	}
	goal = goal.From(time.Now())
	read, err := readPlan(c)
	if err != nil {
		return err
	}
	if read.foreign {
		return corral.ErrorAt(corral.Invalid, "--schedule", "it is the schedule of another plan")
	}
	document := read.document
	if read.nearest {
		v.say("the plan's goal is out of reach: the nearest feasible plan is simulated")
	}
	w, err := v.readWorkflow(c.Context, c.Args().Get(1), false)
	if err != nil {
		return err
	}
	m, err := modelOf(document, w, c.String("error"))
	if err != nil {
		return err
	}
	if err := checkBreaches(read, m.Problem, c.Args().First()); err != nil {
		return err
	}
	m.Waits = waits
	if m.Among, err = v.readBackground(c, document); err != nil {
		return err
	}
	goal.Deadline = cmp.Or(goal.Deadline, document.Goal.Deadline)
	if goal.Budget == nil {
		goal.Budget = document.Goal.Budget
	}
	if goal.Budget != nil && goal.Budget.Unit != document.Cost.Unit {
		return corral.ErrorAt(corral.Invalid, "--budget", "%s is in %s, and the plan's cost in %s",
			*goal.Budget, goal.Budget.Unit, document.Cost.Unit)
	}
	if runs == 1 {
		return v.playOnce(m.Scenario(document, c.Uint64("seed")))
	}
	return v.showSummary(montecarlo.Summarize(m.Outcomes(document, runs, c.Uint64("seed")), goal,
		document.Cost.Unit), goal)
}

// checkBreaches refuses a plan that breaks its rules, such as a plan edited by hand, because its simulation would be
// wrong. name is the user's name for the plan.
func checkBreaches(read planInput, problem plan.Problem, name string) error {
	all := breachesOf(read, problem)
	if len(all) == 0 {
		return nil
	}
	first := all[min(1, len(all)-1)]
	if all[0].Rule != digestRule { // the digest is the least informative rule
		first = all[0]
	}
	return corral.ErrorAt(corral.Invalid, name, "it breaks the rule %q: %s", first.Rule, first.Where)
}

// modelOf returns the model from which outcomes of a plan are drawn. law overrides the plan's distribution of errors in
// runtimes.
func modelOf(document *plan.Plan, w *workflow.Workflow, law string) (m montecarlo.Model, err error) {
	place := "--error"
	if law == "" {
		place, law = "plan", document.Assumed.Spread
	}
	if m.Spread, err = sim.ParseSpread(law); err != nil {
		return m, corral.ErrorAt(corral.Invalid, place, "%w", err)
	}
	work, err := workOf(document, w)
	if err != nil {
		return m, err
	}
	if m.Problem = document.Assumed.Problem(work); place == "--error" {
		m.Errors = nil
	}
	for i, q := range document.Pilots {
		if m.Site(q.Site, q.Queue) == nil {
			return m, corral.ErrorAt(corral.Invalid, "plan",
				"pilot %d is for site %s, about which it has no assumptions", i, q.Site)
		}
	}
	return m, nil
}

// workOf returns the work for which a plan was made: the workflow with the runtimes of the plan's schedule.
func workOf(document *plan.Plan, w *workflow.Workflow) (plan.Work, error) {
	planned := document.Runtimes()
	part := document.Assumed != nil && document.Assumed.Run != 0
	for _, t := range w.Tasks {
		if _, ok := planned[t.ID]; len(planned) > 0 && !ok && !part || len(w.Tasks) < len(planned) {
			return plan.Work{}, corral.ErrorAt(corral.Invalid, "plan", "it was made for another workflow, of %d "+
				"tasks, not %d with task %.80s", len(planned), len(w.Tasks), t.ID)
		}
	}
	return workWith(planned, w, part), nil
}

// workWith returns the work of a workflow with planned runtimes; for tasks that were not planned it uses the workflow's
// own runtimes. If part is set, the work contains only the planned tasks.
func workWith(planned map[string]time.Duration, w *workflow.Workflow, part bool) plan.Work {
	work := plan.Work{Name: w.Name, Graph: w.Graph, Tasks: make([]plan.Task, len(w.Tasks))}
	kinds := profile.Tasks(w)
	for i, t := range w.Tasks {
		runtime, ok := planned[t.ID]
		if !ok {
			runtime, _ = t.Estimated()
		}
		work.Tasks[i] = plan.Task{ID: t.ID, Kind: kinds[i].Transformation, Label: t.Label(),
			Runtime: max(0, runtime), Needs: t.Resources,
			Bytes: w.Bytes(i)}
	}
	if part {
		work, _ = work.Part(func(i int) bool { _, ok := planned[work.Tasks[i].ID]; return ok })
	}
	return work
}

// playOnce simulates one outcome and prints its record, with a line of JSON for each entry, like a run's journal.
func (v planVerbs) playOnce(s sim.Scenario) error {
	t := sim.Run(s)
	to := json.NewEncoder(v.out)
	for _, r := range t.Records {
		if err := to.Encode(r); err != nil {
			return fmt.Errorf("writing the record: %w", err)
		}
	}
	v.say("%s after %s, with %d pilots and %.4g core-hours", t.Ending, brief(corral.Seconds(t.Makespan())),
		len(t.Pilots), t.CoreHours())
	return nil
}

// showSummary prints the distribution of outcomes.
func (v planVerbs) showSummary(s montecarlo.Summary, goal plan.Goal) error {
	if v.format != formTable {
		return v.encode(s)
	}
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	fmt.Fprintf(v.out, "%d outcomes; every task was done in %s of them\n", s.Runs, percent(s.Finished))
	t := newTable(table.Row{"", "LEAST", "10 %", "MEDIAN", "90 %", "MOST"})
	t.AppendRow(table.Row{"makespan", brief(s.Makespan.Least), brief(s.Makespan.P10), brief(s.Makespan.Median),
		brief(s.Makespan.P90), brief(s.Makespan.Most)})
	t.AppendRow(table.Row{"mean wait", brief(s.Wait.Least), brief(s.Wait.P10), brief(s.Wait.Median), brief(s.Wait.P90),
		brief(s.Wait.Most)})
	t.AppendRow(table.Row{"cost", priced(s.Cost.Least), priced(s.Cost.P10), priced(s.Cost.Median), priced(s.Cost.P90),
		priced(s.Cost.Most)})
	v.render(t)
	fmt.Fprintf(v.out, "waste %s\n", percent(s.Waste))
	if s.InTime != nil {
		fmt.Fprintf(v.out, "within the deadline of %s: %s\n", goal.Deadline, percent(*s.InTime))
	}
	if s.InBudget != nil {
		fmt.Fprintf(v.out, "within the budget of %s: %s\n", priced(*goal.Budget), percent(*s.InBudget))
	}
	return nil
}
