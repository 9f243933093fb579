package cli

// ensemble plan simulates an ensemble of workflow files in this program, without corrald, using the estimates in the
// files.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
)

func (v ensembleVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "ensemble", Category: workflows,
		Subcommands: append([]*cli.Command{{
			Name: "plan", Flags: append(ensemblePlanFlags(), ensembleRuleFlags()...),
			Action: v.plan,
		}}, v.commands()...),
	}
}

func ensemblePlanFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "algorithm", Value: forecast.Rehearsal,
			Usage: "`NAME`: rehearsal, spss, wa-dpds, dpds or spds"},
		&cli.StringFlag{Name: "budget", Usage: "spend `AMOUNT` at most, such as 40ch or 18USD"},
		&cli.StringFlag{Name: "deadline", Usage: "complete workflows within `D`, such as 6h; a bare number is seconds"},
		&cli.StringFlag{Name: "resource", Value: forecast.VM, Usage: "`KIND` of machine: vm, held for any time, " +
			"or pilots, held for --walltime"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "a machine runs `N` tasks at a time"},
		&cli.DurationFlag{Name: "walltime", Usage: "a pilot is held for `D`"},
		&cli.IntFlag{Name: "most", Usage: "hold `N` machines at once at most (default: no limit)"},
		&cli.StringFlag{Name: "price", Usage: "a machine costs `PRICE`, such as 1USD/cpu-hour (default: 1ch/cpu-hour)"},
		&cli.StringFlag{Name: "billing", Usage: "bill whole `PERIODS` (default: 1h, for pilots the walltime)"},
		&cli.DurationFlag{Name: "delay", Usage: "a machine is ready after `D`; for a pilot this is its wait"},
		&cli.StringFlag{Name: "error", Value: "0", Usage: "runtimes differ from their estimates by `LAW`: 0, " +
			"uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2"},
		&cli.Float64Flag{Name: "failures", Usage: "an attempt at a task fails with probability `P`"},
		&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "seed random numbers with `N`"},
		&cli.IntFlag{Name: "draws", Value: 5, Usage: "rehearse `N` outcomes if runtimes differ"},
		&cli.DurationFlag{Name: "default-runtime", Usage: "a task without an estimate takes `D`"},
		&cli.IntFlag{Name: "grid", Usage: "simulate `N` budgets and `N` deadlines, up to --budget and --deadline " +
			"(default: to where nearly all are completed)"},
		plotFlag("plot the machines over time, or the grid, into `FILE`.png or .svg"),
	}
}

// ensembleRuleFlags returns the flags that control differences between the published rules and our own.
func ensembleRuleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "published", Usage: "use the rules of the authors' program"},
		&cli.StringSliceFlag{Name: "without", Usage: "leave out the `CORRECTION`: afford, again, booting, finish, " +
			"half, idle, leaving or path of the dynamic algorithms, guard or delay of spss; may be repeated"},
		&cli.StringFlag{Name: "budget-test", Usage: "spss: `TEST` of a plan's cost: lt, below the budget, or le"},
		&cli.StringFlag{Name: "fit-test",
			Usage: "spss: `TEST` of a task's end: lt, before the next task, or le, at its start"},
		&cli.StringFlag{Name: "tie", Usage: "spss: `WHICH` of equal machines is taken: first or last"},
		&cli.StringFlag{Name: "alpha", Usage: "spss: weigh a level's tasks by `A`, its runtime by 1-A (default: 0.7)"},
		&cli.StringFlag{Name: "u-low", Usage: "dpds: release idle machines below a utilisation of `U` (default: 0.7)"},
		&cli.StringFlag{Name: "u-high", Usage: "dpds: request another above `U` (default: 0.9)"},
		&cli.StringFlag{Name: "vmax", Usage: "dpds: hold at most `X` times the initial machines (default: 1)"},
		&cli.DurationFlag{Name: "interval", Usage: "decide every `D` (default: deadline/100, 2s to 90s)"},
		&cli.StringFlag{Name: "margin", Usage: "wa-dpds: admit no workflow for the last `AMOUNT` (default: 0.1, " +
			"or a hundredth of the budget if that is less)"},
	}
}

func (v ensembleVerbs) plan(c *cli.Context) error {
	in, err := ensembleRequestOf(c)
	if err != nil {
		return err
	}
	files, _, err := ensembleFiles(c.Context, c.Args().Slice())
	if err != nil {
		return err
	}
	var all ensemble.Ensemble
	for _, f := range files {
		work, err := v.estimatedWork(c, f.File)
		if err != nil {
			return err
		}
		work.Name = cmp.Or(f.Label, work.Name)
		all = append(all, work)
	}
	if n := c.Int("grid"); c.IsSet("grid") {
		return v.planGrid(c, all, in, n)
	}
	out, err := forecast.PlayEnsemble(all, in)
	if err != nil {
		return err
	}
	if file := c.String("plot"); file != "" {
		if err := draw(file, machinesOf(out, c.Int("cpus"))); err != nil {
			return err
		}
	}
	return v.showOutcome(out)
}

// estimatedWork reads a workflow with the estimates in its file. For a task without an estimate, --default-runtime is
// used.
func (p *printer) estimatedWork(c *cli.Context, file string) (plan.Work, error) {
	w, err := p.readWorkflow(c.Context, file, false)
	if err != nil {
		return plan.Work{}, err
	}
	fallback := map[string]time.Duration{}
	for _, t := range w.Tasks {
		if _, ok := t.Estimated(); ok {
			continue
		}
		if c.Duration("default-runtime") <= 0 {
			return plan.Work{}, corral.ErrorAt(corral.Unsatisfiable, file,
				"task %.80s has no estimate: give one, or --default-runtime", t.ID)
		}
		fallback[t.ID] = c.Duration("default-runtime")
	}
	work := workWith(fallback, w, false)
	for i := range work.Tasks {
		work.Tasks[i].Runtime = work.Tasks[i].Runtime.Round(time.Millisecond)
	}
	return work, nil
}

// maxGrid is the maximum number of budgets, and of deadlines, in a grid, so that a grid has at most four hundred cells.
const maxGrid = 20

// planGrid simulates an ensemble with several budgets and deadlines.
func (v ensembleVerbs) planGrid(c *cli.Context, all ensemble.Ensemble, in forecast.EnsembleRequest, n int) error {
	if n < 2 || n > maxGrid {
		return corral.ErrorAt(corral.Invalid, "--grid", "%d is not between 2 and %d", n, maxGrid)
	}
	cells, err := forecast.PlayGrid(all, in, n)
	if err != nil {
		return err
	}
	if file := c.String("plot"); file != "" {
		if err := draw(file, gridChart(cells, n)); err != nil {
			return err
		}
	}
	return v.print(cells, "", func() {
		header := []string{"DEADLINE"}
		for _, cell := range cells[:n] {
			header = append(header, priced(cell.Budget))
		}
		g := newGrid(header)
		for row := range slices.Chunk(cells, n) {
			line := []any{brief(row[0].Deadline)}
			for _, cell := range row {
				line = append(line, fmt.Sprintf("%d (%s)", cell.Count, priced(cell.Cost)))
			}
			g.add(line)
		}
		g.write(v.out, v.lineWidth())
		fmt.Fprintf(v.out, "\ncompleted workflows of %d, by deadline and budget (and their cost)\n",
			len(all))
	})
}

// gridChart plots the number of completed workflows against the budget, with a line for each deadline.
func gridChart(cells []forecast.Cell, n int) plot.Chart {
	chart := plot.Chart{Title: "Completed workflows", Subtitle: "by budget, for each deadline",
		X: "budget (" + string(cells[0].Budget.Unit) + ")", Y: "workflows"}
	for row := range slices.Chunk(cells, n) {
		s := plot.Series{Name: brief(row[0].Deadline), Line: true, Dots: true}
		for _, cell := range row {
			s.At = append(s.At, plot.XY{X: cell.Budget.Money.Units(), Y: float64(cell.Count)})
		}
		chart.Series = append(chart.Series, s)
	}
	return chart
}

// machinesOf plots the number of machines that a plan holds over time.
func machinesOf(out *forecast.EnsembleOutcome, cpus int) plot.Staircase {
	var spans []plot.Span
	for _, m := range out.Machines {
		spans = append(spans, plot.Span{From: m.From, To: m.End, CPUs: cpus})
	}
	return plot.Staircase{Title: "Machines", Since: "the ensemble's beginning", Held: plot.Sum(spans),
		Deadline: out.Deadline, Subtitle: fmt.Sprintf("%d of %d workflows by %s, cost %s", out.Completed.Count(),
			len(out.Workflows), out.Algorithm, out.Cost.Brief())}
}

// amount reads the value of a required flag as an amount.
func amount(c *cli.Context, flag string) (cost.Amount, error) {
	if c.String(flag) == "" {
		return cost.Amount{}, corral.ErrorAt(corral.Invalid, "--"+flag, "missing: give an amount such as 40ch or 18USD")
	}
	a, err := cost.ParseAmount(c.String(flag))
	if err != nil {
		err = corral.ErrorAt(corral.Invalid, "--"+flag, "%w", err)
	}
	return a, err
}

// amountIn reads an amount whose unit may be omitted but otherwise must be the given unit.
func amountIn(text string, unit cost.Unit) (cost.Amount, error) {
	a, err := cost.ParseAmount(text)
	if err != nil {
		a, err = cost.ParseAmount(text + string(unit))
	}
	if err == nil && a.Unit != unit {
		err = corral.Errorf(corral.Invalid, "%s is in %s, but the budget is in %s: use the same unit for both", a,
			a.Unit, unit)
	}
	return a, err
}

// ensembleRequestOf reads the request from the flags.
func ensembleRequestOf(c *cli.Context) (in forecast.EnsembleRequest, err error) {
	in = forecast.EnsembleRequest{Algorithm: c.String("algorithm"), Published: c.Bool("published"),
		Seed: c.Uint64("seed"), Draws: c.Int("draws")}
	in.MachineTerms = forecast.MachineTerms{Resource: c.String("resource"), Price: c.String("price"),
		Billing: c.String("billing"), CPUs: c.Int("cpus"), Most: c.Int("most"),
		Walltime: corral.Seconds(c.Duration("walltime"))}
	in.Chance = forecast.Chance{Delay: corral.Seconds(c.Duration("delay")), Failures: c.Float64("failures")}
	in.Switches = forecast.Switches{BudgetTest: c.String("budget-test"), FitTest: c.String("fit-test"),
		Tie: c.String("tie"), Without: c.StringSlice("without")}
	if c.IsSet("budget") || !c.IsSet("grid") {
		if in.Budget, err = amount(c, "budget"); err != nil {
			return in, err
		}
	}
	if c.IsSet("deadline") || !c.IsSet("grid") {
		if in.Deadline, err = seconds(c, "deadline"); err != nil {
			return in, err
		}
	}
	if in.Error, err = sim.ParseSpread(c.String("error")); err != nil {
		return in, corral.ErrorAt(corral.Invalid, "--error", "%w", err)
	}
	if c.IsSet("interval") {
		interval := c.Duration("interval")
		in.Interval = &interval
	}
	if c.IsSet("margin") {
		margin, err := amountIn(c.String("margin"), in.Budget.Unit)
		if err != nil {
			return in, corral.ErrorAt(corral.Invalid, "--margin", "%w", err)
		}
		in.Margin = &margin.Money
	}
	for flag, to := range map[string]**plan.Share{
		"alpha": &in.Alpha, "u-low": &in.Low, "u-high": &in.High, "vmax": &in.Scaling,
	} {
		if !c.IsSet(flag) {
			continue
		}
		share, err := plan.ParseShare(c.String(flag))
		if err != nil {
			return in, corral.ErrorAt(corral.Invalid, "--"+flag, "%w", err)
		}
		*to = &share
	}
	return in, nil
}

// seconds reads a duration; a number without a unit is in seconds.
func seconds(c *cli.Context, flag string) (corral.Seconds, error) {
	text := c.String(flag)
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, corral.ErrorAt(corral.Invalid, "--"+flag, "%.40q is not a positive duration such as 6h or 21600",
			text)
	}
	return corral.Seconds(d.Round(time.Millisecond)), nil
}

// showOutcome prints a line for each workflow, and the total cost.
func (v ensembleVerbs) showOutcome(out *forecast.EnsembleOutcome) error {
	if v.format != formTable {
		return v.encode(out)
	}
	err := outcomeTable.list(v.printer, out.Workflows)
	if err != nil || v.quiet {
		return err
	}
	fmt.Fprintf(v.out, "\n%d of %d workflows by %s; cost %s of %s, makespan %s of %s, on %d machines\n",
		out.Completed.Count(), len(out.Workflows), out.Algorithm, priced(out.Cost), priced(out.Budget),
		brief(out.Makespan), brief(out.Deadline), len(out.Machines))
	if !out.WithinBudget {
		fmt.Fprintln(v.out, "that is more than the budget")
	}
	if out.PlanCost != nil {
		fmt.Fprintf(v.out, "the plan costs %s\n", priced(*out.PlanCost))
	}
	if out.InTime != "" {
		fmt.Fprintf(v.out, "as published, what is admitted counts as completed; by the deadline: %d\n",
			out.InTime.Count())
	}
	if o := out.Other; o != nil {
		over := ""
		if !o.WithinBudget {
			over = ", more than the budget"
		}
		fmt.Fprintf(v.out, "by the published rules: %d workflows for %s%s\n", o.Completed.Count(), priced(o.Cost), over)
	}
	if out.Killed+out.Failed > 0 {
		fmt.Fprintf(v.out, "%d tasks ended with their machines and %d failed; that took %s\n", out.Killed,
			out.Failed, brief(out.Lost))
	}
	for i, candidate := range out.Candidates {
		was := "it was compared with"
		if i == 0 {
			was = "the rehearsal chose"
		}
		fmt.Fprintf(v.out, "%s %s: %d workflows for %s\n", was, candidate.Name, candidate.Completed.Count(),
			priced(candidate.Cost))
	}
	return nil
}

var outcomeTable = listing[forecast.WorkflowOutcome]{
	id: func(w forecast.WorkflowOutcome) string { return w.Name },
	columns: []column[forecast.WorkflowOutcome]{
		{"workflow", func(w forecast.WorkflowOutcome) any { return w.Name }},
		{"tasks", func(w forecast.WorkflowOutcome) any { return w.Tasks }},
		{"completed", func(w forecast.WorkflowOutcome) any { return w.Completed }},
		{"reason", func(w forecast.WorkflowOutcome) any { return w.Reason }},
	},
}
