package cli

// plan simulates an ensemble of workflow files in this program, without corrald, using the estimates in the files.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/kit/shell"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
)

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
		if err := draw(file, machinesOf(out, in.CPUs)); err != nil {
			return err
		}
	}
	if err := v.showOutcome(out); err != nil {
		return err
	}
	v.say("store and run it with `%s`", runOf(c, in))
	return nil
}

// sharedFlags are the flags of `corral plan` for an ensemble that `corral ensemble run` has, too, by their names there.
var sharedFlags = []struct{ plan, run string }{{"budget", "budget"}, {"deadline", "deadline"},
	{"algorithm", "algorithm"}, {"shape", "cpus"}, {"walltime", "walltime"}, {"most", "most"}, {"error", "error"},
	{"seed", "seed"}, {"default-runtime", "default-runtime"}}

// runOf returns the command that stores and runs the planned ensemble: the arguments and the shared flags, with the
// first of several laws of errors. The price, the billing and the delay of pilots are the site's.
func runOf(c *cli.Context, in forecast.EnsembleRequest) string {
	line := []string{"corral ensemble run"}
	for _, f := range sharedFlags {
		if !c.IsSet(f.plan) {
			continue
		}
		value := fmt.Sprint(c.Value(f.plan))
		if f.plan == "error" {
			value = in.Error.String()
		}
		line = append(line, "--"+f.run, shell.Legible(value))
	}
	for _, arg := range c.Args().Slice() {
		line = append(line, shell.Legible(arg))
	}
	return strings.Join(line, " ")
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
	if len(in.Errors) > 1 {
		return corral.ErrorAt(corral.Invalid, "--error", "with --grid, give one law instead of %d", len(in.Errors))
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

// draws is the number of outcomes that a rehearsal simulates if runtimes differ from their estimates.
const draws = 5

// ensembleRequestOf reads the request from the flags.
func ensembleRequestOf(c *cli.Context) (in forecast.EnsembleRequest, err error) {
	in = forecast.EnsembleRequest{Algorithm: cmp.Or(c.String("algorithm"), forecast.Rehearsal), Draws: draws, Seed: 1}
	in.MachineTerms = forecast.MachineTerms{Resource: forecast.VM, Price: c.String("price"),
		Billing: c.String("billing"), CPUs: 1, Most: c.Int("most"), Walltime: corral.Seconds(c.Duration("walltime"))}
	in.Delay = corral.Seconds(c.Duration("overhead"))
	if c.IsSet("seed") {
		in.Seed = c.Uint64("seed")
	}
	if c.IsSet("shape") {
		in.CPUs = c.Int("shape")
	}
	if c.IsSet("walltime") {
		in.Resource = forecast.Pilots
	}
	goal, err := goalOf(c)
	if err != nil {
		return in, err
	}
	if in.Deadline = goal.Deadline; goal.Budget != nil {
		in.Budget = *goal.Budget
	}
	for _, flag := range []string{"budget", "deadline"} {
		if !c.IsSet(flag) && !c.IsSet("grid") {
			return in, corral.ErrorAt(corral.Invalid, dashed(flag),
				"missing: an ensemble has a budget and a deadline, such as --budget 40ch --deadline 6h")
		}
	}
	if in.Delay < 0 {
		return in, corral.ErrorAt(corral.Invalid, "--overhead", "%s is negative", in.Delay)
	}
	if c.IsSet("deadline") {
		if in.Deadline, err = deadlineFromNow(c); err != nil {
			return in, err
		}
	}
	if c.IsSet("error") {
		in.Errors, err = sim.ParseSpreads(c.String("error"))
		if err != nil {
			return in, corral.ErrorAt(corral.Invalid, "--error", "%w", err)
		}
		in.Error = in.Errors[0]
	}
	return in, nil
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
	fmt.Fprintf(v.out, "\n%d of %d workflows by %s; cost %s of %s, on %d machines\n", out.Completed.Count(),
		len(out.Workflows), out.Algorithm, priced(out.Cost), priced(out.Budget), len(out.Machines))
	if !out.WithinBudget {
		fmt.Fprintln(v.out, "the cost exceeds the budget")
	}
	fmt.Fprintf(v.out, "makespan %s of %s; %s including late tasks\n", brief(out.Makespan), brief(out.Deadline),
		brief(out.WithLate))
	if out.PlanCost != nil {
		fmt.Fprintf(v.out, "the plan costs %s\n", priced(*out.PlanCost))
	}
	v.showUnready(out)
	if out.Killed+out.Failed > 0 {
		fmt.Fprintf(v.out, "%d tasks ended with their machines and %d failed; %s of work are lost\n", out.Killed,
			out.Failed, brief(out.Lost))
	}
	v.showCandidates(out.Candidates)
	if len(out.Regrets) == 0 {
		return nil
	}
	fmt.Fprintln(v.out, "\nregret: how much more the best candidate completes in the same outcome")
	return regretTable.list(v.printer, out.Regrets)
}

// showCandidates prints what the rehearsal compared; the first candidate is the chosen one. Candidates that differ only
// in parameters of no effect are printed once.
func (v ensembleVerbs) showCandidates(all []forecast.Candidate) {
	printed := map[string]bool{}
	for i, candidate := range all {
		said := fmt.Sprintf("%s: %s for %s", candidate.Name, plural(candidate.Completed.Count(), "workflow"),
			priced(candidate.Cost))
		switch {
		case i == 0:
			fmt.Fprintln(v.out, "the rehearsal chose "+said)
		case !printed[said]:
			fmt.Fprintln(v.out, "it was compared with "+said)
		}
		printed[said] = true
	}
}

// showUnready prints how many machines ended before they were ready, and what they cost.
func (v ensembleVerbs) showUnready(out *forecast.EnsembleOutcome) {
	n, sum := 0, cost.Money(0)
	for _, m := range out.Machines {
		if m.Ready == nil {
			n, sum = n+1, sum.Plus(m.Cost)
		}
	}
	if n > 0 {
		fmt.Fprintf(v.out, "never ready: %s, billed %s\n", plural(n, "machine"),
			priced(cost.Amount{Money: sum, Unit: out.Cost.Unit}))
	}
}

var regretTable = listing[forecast.Regret]{
	id: func(r forecast.Regret) string { return r.Error },
	columns: []column[forecast.Regret]{
		{"error", func(r forecast.Regret) any { return r.Error }},
		{"completed", func(r forecast.Regret) any { return r.Completed }},
		{"cost", func(r forecast.Regret) any { return priced(r.Cost) }},
		{"best", func(r forecast.Regret) any { return r.Best }},
		{"by", func(r forecast.Regret) any { return r.By }},
		{"regret", func(r forecast.Regret) any { return fmt.Sprintf("%.4g", r.Regret) }},
	},
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
