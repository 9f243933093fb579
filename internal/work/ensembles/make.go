package ensembles

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/cloud"
	"github.com/corral-pilot/corral/workflow"
)

// Rehearsal is the name of the algorithm that chooses one of the others.
const Rehearsal = "rehearsal"

// Algorithms lists all algorithms that may be requested.
var Algorithms = []string{Rehearsal, rehearsal.SPSS, rehearsal.WADPDS, rehearsal.DPDS, rehearsal.SPDS}

// draws is the number of outcomes that a rehearsal simulates in addition to the expected one, if runtimes are expected
// to be inaccurate.
const draws = 5

// A Drafted is an ensemble that has been checked and planned but not yet stored.
type Drafted struct {
	Row   record.Ensemble
	Runs  []api.NewRun         // requests for the runs of its workflows
	Flows []*workflow.Workflow // the workflows themselves
}

// Draft reads the workflows of a request, determines the delay of pilots, and chooses the policy. Problems with the
// request are Invalid or Unsatisfiable errors, which refer to a field of the request or to a place in a workflow's
// file.
func Draft(ctx context.Context, in api.NewEnsemble, facts provision.Facts, now time.Time) (x Drafted, err error) {
	x.Row = record.Ensemble{Name: in.Name, Progress: record.Progress{Spent: cost.Amount{Unit: in.Budget.Unit}.String()},
		Goal: record.Goal{Budget: in.Budget.String(), Deadline: in.Deadline, DefaultRuntime: in.DefaultRuntime,
			Algorithm: cmp.Or(in.Algorithm, Rehearsal), Error: cmp.Or(in.Error, "0"), Seed: in.Seed}}
	if !slices.Contains(Algorithms, x.Row.Goal.Algorithm) {
		return x, corral.ErrorAt(corral.Invalid, "algorithm", "%.40q is none of %q", in.Algorithm, Algorithms)
	}
	if x.Row.Pilots, err = pilots(in, facts, now); err != nil {
		return x, err
	}
	for _, m := range in.Workflows {
		flow, err := read(ctx, m.WorkflowName, m.Workflow)
		if err != nil {
			return x, err
		}
		x.Flows, x.Runs = append(x.Flows, flow), append(x.Runs, runOf(in, m))
	}
	d, err := direct(x.Row, x.Flows)
	if err = cmp.Or(err, d.Problem.Ensemble.Check()); err == nil {
		err = cmp.Or(d.check(x.Row), fits(d.Problem.Ensemble, x.Row.Pilots), afford(d, facts))
	}
	if err != nil {
		return x, err
	}
	choice := choose(x.Row.Goal.Algorithm, d.Problem)
	for k, w := range d.Problem.Ensemble {
		x.Row.Members = append(x.Row.Members, record.Member{Workflow: x.Flows[k].Name, Tasks: len(w.Tasks),
			Runtime: corral.Seconds(ensemble.Runtime(w)), Standing: record.Waiting})
	}
	x.prioritise(choice.Policy(d.Problem))
	x.Row.Choice, err = json.Marshal(choice)
	return x, err
}

// check refuses a static plan if the pilots do not meet its assumptions.
func (d Direction) check(row record.Ensemble) error {
	switch m := d.Problem.Machines; {
	case row.Goal.Algorithm != rehearsal.SPSS:
		return nil
	case m.Ends > 0:
		return corral.ErrorAt(corral.Invalid, "algorithm", "%s plans pilots that are held until the deadline, and "+
			"at site %s they have %s: use another", rehearsal.SPSS, row.Pilots.Site, row.Pilots.Walltime)
	case m.Slots > 1:
		return corral.ErrorAt(corral.Invalid, "algorithm", "%s plans pilots of one cpu: use another for those of %d",
			rehearsal.SPSS, m.Slots)
	}
	return nil
}

// fits refuses tasks that none of the pilots could run.
func fits(all ensemble.Ensemble, p record.Pilots) error {
	has := corral.Resources{CPUs: p.CPUs, MemoryMiB: p.MemoryMiB}
	room := has
	room.MemoryMiB, room.DiskMiB = cmp.Or(has.MemoryMiB, corral.Unlimited), corral.Unlimited
	for _, w := range all {
		for _, t := range w.Tasks {
			if !t.Needs.FitIn(room) {
				return corral.ErrorAt(corral.Unsatisfiable, w.Name, "task %s needs %s, and pilots of the ensemble "+
					"have %s: request more with --cpus or --memory", t.ID, t.Needs, has)
			}
		}
	}
	return nil
}

// afford refuses a budget that exceeds the amount that may be spent at the site.
func afford(d Direction, facts provision.Facts) error {
	left := facts.Ledger.Left()
	if left == nil || d.Problem.Budget <= *left {
		return nil
	}
	return corral.ErrorAt(corral.Unsatisfiable, "budget",
		"%s are left of the allocation at site %s, and %s are requested", d.Problem.Terms.Amount(*left),
		facts.Site.Name, d.Problem.Terms.Amount(d.Problem.Budget))
}

// read reads a workflow that can be run.
func read(ctx context.Context, name string, document []byte) (*workflow.Workflow, error) {
	flow, err := request.Workflow(ctx, document, name)
	if err != nil {
		return nil, err
	}
	return flow, cmp.Or(flow.Runnable(), flow.Schedulable())
}

// runOf returns the request for the run of a workflow. Ready tasks may wait for a pilot until the deadline.
func runOf(in api.NewEnsemble, m api.NewMember) api.NewRun {
	r := api.NewRun{Cluster: in.Cluster, Workflow: m.Workflow, WorkflowName: cmp.Or(m.WorkflowName, "workflow"),
		SourceDir: m.SourceDir, Options: in.Options, Labels: m.Labels}
	r.Options.Stall, r.Options.DefaultRuntime = in.Deadline+corral.Seconds(time.Hour), in.DefaultRuntime
	return r
}

// prioritise sets the priorities of runs so that their tasks are queued in the policy's order. Other runs of the
// cluster follow unless they have the same priorities, because the ensemble pays for its pilots.
func (x Drafted) prioritise(p ensemble.Strategy) {
	order := make([]int, len(x.Runs))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Place(a, 0), p.Place(b, 0)) })
	for place, k := range order {
		x.Runs[k].Options.Priority = len(order) - place
	}
}

// pilots returns the kind of pilots that an ensemble may request at a site. Pilots that the site does not offer are an
// error.
func pilots(in api.NewEnsemble, facts provision.Facts, now time.Time) (p record.Pilots, err error) {
	site := facts.Site
	deadline := time.Duration(in.Deadline)
	p = record.Pilots{Site: site.Name, SiteID: site.ID, CPUs: max(1, in.CPUs), MemoryMiB: in.MemoryMiB,
		Price: site.Terms().Price, Billing: site.Billing,
		Interval: corral.Seconds(min(90*time.Second, max(2*time.Second, deadline/100)))}
	p.Walltime = corral.Seconds((jobfiles.Lasting(deadline) + time.Second - 1).Truncate(time.Second))
	if in.Walltime > 0 {
		p.Walltime = min(p.Walltime, in.Walltime)
	}
	queues, _ := provision.Sites([]provision.Facts{facts}, provision.Caution{Share: 0.5}, now)
	for _, q := range queues {
		if q.Host.CPUs < p.CPUs {
			continue
		}
		p.Walltime = min(p.Walltime, corral.Seconds(q.Walltime))
		shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: p.CPUs, MemoryMiB: in.MemoryMiB},
			Walltime: time.Duration(p.Walltime)}
		p.Delay = corral.Seconds((q.Wait(shape) + q.Overhead).Round(time.Millisecond))
		p.Most = cmp.Or(in.Most, max(1, min(q.Pilots, q.CPUs/p.CPUs)))
		p.Leaving = corral.Seconds(site.System().Leave)
		g, err := request.Glidein(wanted(p, ""), now)
		if err == nil {
			err = request.Fit(&g, site, facts.Machine)
		}
		p.MemoryMiB = g.MemoryMiB // the share of its cpus unless requested; it may have a price
		return p, err
	}
	return p, corral.ErrorAt(corral.Unsatisfiable, "site",
		"%s takes no pilots of %d cpus now: see `corral site show %[1]s`", site.Name, p.CPUs)
}

// exactly is the billing period of a site that bills for exactly the time held: a ten-thousandth of an hour, so that
// its price is a whole number of micro-units whenever the hourly price is a whole number of hundredths.
const exactly = time.Hour / 10_000

// terms returns the cost of a pilot. If a minimum time is billed, all time is counted in periods of that length,
// which overestimates the cost.
func terms(p record.Pilots) (ensemble.Terms, error) {
	tariff, err := cost.ParseTariff(p.Price, p.Billing)
	if err != nil {
		return ensemble.Terms{}, err
	}
	period := cmp.Or(max(tariff.Billing.Period, tariff.Billing.Minimum), exactly)
	held := cost.Holding{Hosts: 1, CPUs: p.CPUs, MemoryMiB: p.MemoryMiB, Held: time.Hour}
	_, hour := tariff.Rate.Charge(held, cost.Billing{})
	if hour <= 0 {
		return ensemble.Terms{}, corral.ErrorAt(corral.Invalid, "site",
			"pilots at %s cost nothing: a budget needs pilots with a price", p.Site)
	}
	return ensemble.Terms{Price: ensemble.Terms{Price: hour, Period: time.Hour}.Of(period), Period: period,
		Unit: tariff.Rate.Unit}, nil
}

// direct creates a direction from a row and the workflows of its members, but does not set the policy.
func direct(row record.Ensemble, flows []*workflow.Workflow) (d Direction, err error) {
	d.Problem = rehearsal.Problem{Deadline: time.Duration(row.Goal.Deadline), Delay: time.Duration(row.Pilots.Delay),
		Draws: draws, Seed: row.Goal.Seed, Interval: time.Duration(row.Pilots.Interval),
		Leaving: time.Duration(row.Pilots.Leaving), Shared: true}
	p := &d.Problem
	if p.Terms, err = terms(row.Pilots); err != nil {
		return d, err
	}
	budget, err := cost.ParseAmount(row.Goal.Budget)
	if err == nil && budget.Unit != p.Terms.Unit {
		err = corral.Errorf(corral.Invalid,
			"%s is in %s, but pilots at site %s cost %s: use the same unit for both",
			budget, budget.Unit, row.Pilots.Site, p.Terms.Unit)
	}
	if err != nil {
		return d, corral.ErrorAt(corral.Invalid, "budget", "%w", err)
	}
	p.Budget = budget.Money
	if p.Spread, err = sim.ParseSpread(row.Goal.Error); err != nil {
		return d, corral.ErrorAt(corral.Invalid, "error", "%w", err)
	}
	p.Machines = cloud.Kind{Slots: row.Pilots.CPUs, Queued: true, Most: row.Pilots.Most}
	walltime := time.Duration(row.Pilots.Walltime)
	if held := walltime - jobfiles.Reserve(walltime); held < p.Deadline {
		p.Machines.Ends = held
	}
	for _, flow := range flows {
		work, _, err := provision.Work(flow, provision.Experience{Fallback: time.Duration(row.Goal.DefaultRuntime)})
		if err != nil {
			return d, corral.ErrorAt(corral.KindOf(err), flow.Name, "%w", err)
		}
		p.Ensemble = append(p.Ensemble, work)
	}
	return d, nil
}

// choose chooses the policy.
func choose(algorithm string, p rehearsal.Problem) rehearsal.Choice {
	if algorithm == Rehearsal {
		return rehearsal.Choose(p)[0].Choice
	}
	return rehearsal.Default(algorithm, p)
}

// with returns the direction completed with the policy that was chosen.
func (d Direction) with(choice json.RawMessage) (Direction, error) {
	var c rehearsal.Choice
	if err := json.Unmarshal(choice, &c); err != nil {
		return d, fmt.Errorf("reading the chosen policy: %w", err)
	}
	live := d.Problem
	live.Machines.Ends = cmp.Or(live.Machines.Ends, live.Deadline) // any pilot may fail
	live.Explain = true
	d.Policy, d.Patient, d.Static = c.Policy(live), c.Algorithm == rehearsal.WADPDS, c.Algorithm == rehearsal.SPSS
	return d, nil
}
