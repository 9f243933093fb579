package request

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// CheckPlan checks a request for a plan. It computes the durations of bounds that are instants, and sets a missing
// objective: the minimum cost if there is a deadline, the minimum makespan if there is only a budget, and otherwise a
// tradeoff of both, with equal weights by default.
func CheckPlan(in *api.NewPlan, now time.Time) error {
	var k checker
	g := &in.Goal
	k.invalid(len(in.Workflow) == 0 && in.Run == 0, "workflow", "missing")
	k.invalid(len(in.Workflow) > 0 && in.Run != 0, "run_id", "the rest of a run is planned with the run's own "+
		"workflow: leave out the workflow")
	k.invalid(in.Clustering != "" && in.Run != 0, "clustering", "the run has already assigned its tasks to jobs")
	k.invalid(g.Deadline < 0, "deadline_s", "%s is not a positive duration", g.Deadline)
	k.instant("deadline", g.DeadlineAt, g.Deadline, now)
	k.instant("not_before", g.NotBeforeAt, g.NotBefore, now)
	*g = g.Planned(now)
	if g.Budget != nil {
		k.invalid(g.Budget.Money <= 0, "budget", "the budget must be positive")
		if _, err := cost.ParseAmount(g.Budget.String()); err != nil { // ParseAmount also checks the unit
			k.keep(corral.ErrorAt(corral.Invalid, "budget", "%w", err))
		}
	}
	k.invalid(g.Tradeoff < 0 || g.Tradeoff > plan.Whole, "tradeoff",
		"%s is not between 0 (only the makespan counts) and 1 (only the cost)", g.Tradeoff)
	k.invalid(math.IsNaN(g.Confidence) || g.Confidence < 0 || g.Confidence >= 1, "confidence",
		"%g is not between 0 and 1", g.Confidence)
	if in.NextRun != nil {
		k.keep(CheckRun(in.NextRun.Request(*in)))
	}
	k.invalid(in.DefaultRuntime < 0, "default_runtime_s", "%s is negative", in.DefaultRuntime)
	k.invalid(in.HostCPUs < 0, "host_cpus", "%d is negative", in.HostCPUs)
	if _, err := clustering.Parse(in.Clustering); err != nil {
		k.keep(corral.ErrorAt(corral.Invalid, "clustering", "%w", err))
	}
	k.invalid(in.Apply && in.DryRun, "apply", "a dry run requests nothing: leave out apply or dry_run")
	k.sites(in.Sites)
	checkSources(&k, "profiles", in.Profiles)
	checkWhatIf(&k, in)
	switch {
	case g.Objective != "":
		k.invalid(!slices.Contains(plan.Objectives, g.Objective), "objective", "%.40q is none of %v", g.Objective,
			plan.Objectives)
	case g.Deadline > 0:
		g.Objective = plan.Cost
	case g.Budget != nil:
		g.Objective = plan.Makespan
	default:
		g.Objective, g.Tradeoff = plan.Tradeoff, cmp.Or(g.Tradeoff, plan.Whole/2)
	}
	k.invalid(g.Objective == plan.CPUs && g.Deadline == 0, "objective", "minimizing cpus requires a deadline")
	return k.err
}

// instant checks a bound that is given as an instant.
func (k *checker) instant(field string, at time.Time, within corral.Seconds, now time.Time) {
	if at.IsZero() {
		return
	}
	k.invalid(within != 0, field+"_at", "cannot be used with %s_s", field)
	k.invalid(!at.After(now), field+"_at", "%s has passed", at.Format(time.RFC3339))
	k.invalid(at.After(now.Add(time.Duration(maxSpan))), field+"_at", "%s is more than %s ahead",
		at.Format(time.RFC3339), maxSpan)
}

// checkWhatIf checks the algorithm and the assumptions of a plan.
func checkWhatIf(k *checker, in *api.NewPlan) {
	k.invalid(in.Algorithm != "" && !slices.Contains(plan.Algorithms, in.Algorithm), "algorithm",
		"%.40q is none of %v", in.Algorithm, plan.Algorithms)
	tariff, err := cost.ParseTariff(in.Price, in.Billing)
	if err == nil {
		err = checkPeriod(tariff.Billing)
	}
	k.keep(err)
	k.invalid(in.Overhead != nil && *in.Overhead < 0, "overhead_s", "%s is negative", in.Overhead)
	k.invalid(in.QueueWait != nil && *in.QueueWait < 0, "queue_wait_s", "%s is negative", in.QueueWait)
}
