package cli

// plan is one verb for three kinds of plans: pilots for one workflow, which corrald plans; an ensemble of workflows
// (plan_ensemble.go); and reservations on slots that sites offer (plan_offers.go). The arguments and the flags
// determine the kind.

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
)

// A planKind is a kind of plan, and the flags of `corral plan` that apply to it.
type planKind struct {
	name  string
	flags []string
}

// The kinds. Flags that none of the other two lists apply to pilots for one workflow.
var (
	ofPilots   = planKind{name: "pilots for one workflow"}
	ofEnsemble = planKind{"an ensemble", []string{"algorithm", "billing", "budget", "deadline", "default-runtime",
		"error", "grid", "most", "overhead", "plot", "price", "seed", "shape", "walltime"}}
	ofOffers = planKind{"slots", []string{"budget", "deadline", "default-runtime", "offers", "seed", "site",
		"slots", "tradeoff", "transfer"}}
)

// planKindFlags returns the flags of the plans that are made without corrald.
func planKindFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "offers", Usage: "plan on the slots in `FILE`, in CSV; may be repeated"},
		&cli.BoolFlag{Name: "slots", Usage: "plan on the slots that are free now in the queues of --site"},
		durationFlag("transfer", 0, "slots: moving data from one site to another takes `D`"),
		durationFlag("walltime", 0, "an ensemble: a pilot is held for `D` (default: machines are held for any time)"),
		&cli.IntFlag{Name: "most", Usage: "an ensemble: hold at most `N` machines at once (default: no limit)"},
		&cli.IntFlag{Name: "grid", Usage: "an ensemble: simulate `N` budgets and `N` deadlines, up to --budget and " +
			"--deadline (default: to where nearly all workflows are completed)"},
	}
}

// byKind returns the action of `corral plan`; pilots is the action for one workflow.
func (v planVerbs) byKind(pilots cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		kind, act := ofPilots, pilots
		switch {
		case len(c.StringSlice("offers")) > 0 || c.Bool("slots"):
			kind, act = ofOffers, slotVerbs(v).plan
		case c.NArg() > 1 || isFolder(c.Args().First()) ||
			slices.Contains(forecast.Algorithms, c.String("algorithm")):
			kind, act = ofEnsemble, ensembleVerbs(v).plan
		}
		if err := kind.check(c); err != nil {
			return err
		}
		return act(c)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// check refuses flags that do not apply to a kind.
func (k planKind) check(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || k.takes(name) || name == "cluster" && os.Getenv("CORRAL_CLUSTER") != "" {
			continue
		}
		hint := ""
		switch {
		case k.name == ofEnsemble.name && name == "apply":
			hint = ": store and run it with `corral ensemble run`"
		case slices.ContainsFunc(planKindFlags(), func(f cli.Flag) bool { return f.Names()[0] == name }):
			hint = ": give --offers or --slots for slots"
			if slices.Contains(ofEnsemble.flags, name) {
				hint = ": name several workflows, or a folder, for an ensemble"
			}
		}
		return corral.ErrorAt(corral.Invalid, dashed(name), "does not apply to a plan of %s%s", k.name, hint)
	}
	return nil
}

// takes reports whether a flag applies to a kind.
func (k planKind) takes(flag string) bool {
	if k.flags != nil {
		return slices.Contains(k.flags, flag)
	}
	return !slices.ContainsFunc(planKindFlags(), func(f cli.Flag) bool { return f.Names()[0] == flag })
}
