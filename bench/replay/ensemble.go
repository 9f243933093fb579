package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
)

// An ensembleLine holds the flags of ensemble plan that need more than their type.
type ensembleLine struct {
	in                            forecast.EnsembleRequest
	budget, errors, margin        string
	alpha, low, high, vmax        string
	deadline, delay, walltime     seconds
	interval, fallback            seconds
	schedule, csv, actual, output string
	without                       list
}

// ensemblePlan simulates an ensemble of workflow files, the one with the highest priority first.
func ensemblePlan(f *flag.FlagSet) func(context.Context, []string, io.Writer) error {
	l := &ensembleLine{}
	f.StringVar(&l.in.Algorithm, "algorithm", forecast.SPSS, "`NAME`: rehearsal, spss, wa-dpds, dpds or spds")
	f.StringVar(&l.in.Resource, "resource", forecast.VM, "`KIND` of machine: vm or pilots")
	f.StringVar(&l.budget, "budget", "", "spend `AMOUNT` at most; a bare number is service units")
	f.Var(&l.deadline, "deadline", "complete workflows within `D`; a bare number is seconds")
	f.StringVar(&l.in.Price, "price", "", "a machine costs `PRICE` (default: 1 an hour, in the budget's unit)")
	f.StringVar(&l.in.Billing, "billing", "", "bill whole `PERIODS` (default: 1h, for pilots the walltime)")
	f.IntVar(&l.in.CPUs, "shape", 1, "a machine runs `N` tasks at a time")
	f.IntVar(&l.in.Most, "most", 0, "hold `N` machines at once at most; 0: no limit")
	f.Var(&l.walltime, "walltime", "a pilot is held for `D`")
	f.Var(&l.delay, "delay", "a machine is ready after `D`")
	f.StringVar(&l.errors, "error", "0", "runtimes differ by `LAWS`: the first happens, the regret is printed at each")
	f.Float64Var(&l.in.Failures, "failures", 0, "an attempt at a task fails with probability `P`")
	f.Uint64Var(&l.in.Seed, "seed", 1, "seed of random numbers")
	f.IntVar(&l.in.Draws, "draws", 5, "rehearse `N` outcomes if runtimes differ")
	f.Var(&l.fallback, "default-runtime", "a task without an estimate takes `D`")
	f.BoolVar(&l.in.Published, "published", false, "use the rules of the authors' program")
	f.Var(&l.without, "without", "leave out the `CORRECTION`; may be repeated")
	f.StringVar(&l.in.BudgetTest, "budget-test", "", "spss: `TEST` of a plan's cost: lt or le")
	f.StringVar(&l.in.FitTest, "fit-test", "", "spss: `TEST` of a task's end: lt or le")
	f.StringVar(&l.in.Tie, "tie", "", "spss: `WHICH` of equal machines is taken: first or last")
	f.StringVar(&l.alpha, "alpha", "", "spss: weigh a level's tasks by `A`")
	f.StringVar(&l.low, "u-low", "", "dpds: release idle machines below a utilisation of `U`")
	f.StringVar(&l.high, "u-high", "", "dpds: request another above `U`")
	f.StringVar(&l.vmax, "vmax", "", "dpds: hold at most `X` times the initial machines")
	f.Var(&l.interval, "interval", "decide every `D`")
	f.StringVar(&l.margin, "margin", "", "wa-dpds: admit no workflow for the last `AMOUNT`")
	f.StringVar(&l.schedule, "schedule", "", "write each task that ended to `FILE`, as lines of JSON")
	f.StringVar(&l.csv, "csv", "", "write a line for each workflow to `FILE`")
	f.StringVar(&l.actual, "actual", "", "tasks take the seconds in `FILE`: JSON, workflow → task → seconds")
	f.StringVar(&l.output, "o", "table", "`FORM` of the output: table or json")
	return l.run
}

func (l *ensembleLine) run(ctx context.Context, files []string, stdout io.Writer) error {
	in, err := l.request()
	if err != nil {
		return err
	}
	var all ensemble.Ensemble
	for _, file := range files {
		w, err := read(ctx, file, time.Duration(l.fallback))
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	if l.actual != "" {
		if in.Actual, err = readActual(l.actual, all); err != nil {
			return err
		}
	}
	out, err := forecast.PlayEnsemble(all, in)
	if err != nil {
		return err
	}
	if err := cmp.Or(writeSchedule(l.schedule, all, out), writeWorkflows(l.csv, out)); err != nil {
		return err
	}
	if l.output == "json" {
		return writeJSON(stdout, out)
	}
	fmt.Fprintf(stdout, "%s by %s: cost %s of %s (%v), makespan %s of %s, %s with late tasks\n", out.Completed,
		out.Algorithm, out.Cost, out.Budget, out.WithinBudget, time.Duration(out.Makespan), time.Duration(out.Deadline),
		time.Duration(out.WithLate))
	for _, w := range out.Workflows {
		fmt.Fprintf(stdout, "%s\t%v\t%s\n", w.Name, w.Completed, w.Reason)
	}
	for _, r := range out.Regrets {
		fmt.Fprintf(stdout, "error %s: %s, best %s by %s, regret %g\n", r.Error, r.Completed, r.Best, r.By, r.Regret)
	}
	return nil
}

// request returns the request that the flags describe.
func (l *ensembleLine) request() (in forecast.EnsembleRequest, err error) {
	in = l.in
	in.Deadline, in.Delay, in.Walltime = corral.Seconds(l.deadline), corral.Seconds(l.delay), corral.Seconds(l.walltime)
	in.Record, in.Without = true, l.without
	if l.output != "table" && l.output != "json" {
		return in, corral.ErrorAt(corral.Invalid, "-o", "%.40q is neither table nor json", l.output)
	}
	if in.Budget, err = amount(l.budget, cost.ServiceUnits); err != nil {
		return in, corral.ErrorAt(corral.Invalid, "--budget", "%w", err)
	}
	if in.Price == "" {
		in.Price = "1" + string(in.Budget.Unit) + "/cpu-hour"
	}
	if in.Errors, err = sim.ParseSpreads(l.errors); err != nil {
		return in, corral.ErrorAt(corral.Invalid, "--error", "%w", err)
	}
	in.Error = in.Errors[0]
	if l.interval > 0 {
		in.Interval = (*time.Duration)(&l.interval)
	}
	if l.margin != "" {
		margin, err := amount(l.margin, in.Budget.Unit)
		if err == nil && margin.Unit != in.Budget.Unit {
			err = corral.Errorf(corral.Invalid, "%s is not in %s, the budget's unit", margin, in.Budget.Unit)
		}
		if err != nil {
			return in, corral.ErrorAt(corral.Invalid, "--margin", "%w", err)
		}
		in.Margin = &margin.Money
	}
	for _, s := range []struct {
		flag, text string
		to         **ensemble.Share
	}{
		{"--alpha", l.alpha, &in.Alpha}, {"--u-low", l.low, &in.Low}, {"--u-high", l.high, &in.High},
		{"--vmax", l.vmax, &in.Scaling},
	} {
		if s.text == "" {
			continue
		}
		share, err := ensemble.ParseShare(s.text)
		if err != nil {
			return in, corral.ErrorAt(corral.Invalid, s.flag, "%w", err)
		}
		*s.to = &share
	}
	return in, nil
}

// amount reads an amount; a bare number is in the given unit.
func amount(text string, unit cost.Unit) (cost.Amount, error) {
	a, err := cost.ParseAmount(text)
	if err != nil {
		if bare, err := cost.ParseAmount(text + string(unit)); err == nil && text != "" {
			return bare, nil
		}
	}
	return a, err
}
