package provision

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Runs provides the remaining work of runs, and reports their expected ends; run.Manager implements it.
type Runs interface {
	Left(context.Context, corral.RunID) (*workflow.Workflow, []execution.Progress, error)
	// Expect takes the expected end of a run by its plan, zero if it is unknown, and whether the plan is still revised.
	Expect(id corral.RunID, end time.Time, revised bool)
}

// Workers provides the present workers of a cluster; admission.Clusters implements it. The method does not use the
// store, so that it can be called within a transaction.
type Workers interface {
	Workers(corral.ClusterID) []corral.Worker
}

// A Reviser revises plans during their runs. All data on which its decisions depend is read again for each decision,
// from the store and from the run, except for the plan's document, which never changes. A Reviser also remembers which
// documents cannot be read and how long pilots have been idle, but it determines both again after a restart. So it may
// be killed at any time.
type Reviser struct {
	lg      *slog.Logger
	db      *store.DB
	runs    Runs
	workers Workers
	machine corral.SiteQueue // this machine

	idle    map[corral.GlideinID]time.Time // when each glidein was first observed without a task
	said    map[corral.PlanID]promise      // of plans that are in progress
	unread  map[corral.PlanID]time.Time    // when reading the plan's promise failed
	stuck   map[corral.PlanID]time.Time    // since when a plan's run waits although no pilot comes
	unpaced map[corral.PlanID]time.Time    // when pacing the pilots of a plan failed
	budgets map[corral.PlanID]bool         // whether each plan in progress has a budget
	runsOf  map[corral.RunID]bool          // the runs whose expected ends were reported
	hurry   bool                           // a plan is so close to its budget that the next check must be sooner
	took    time.Duration                  // duration of the previous check
}

// NewReviser returns a reviser. machine describes this machine as the queue of the local fork batch system.
func NewReviser(lg *slog.Logger, db *store.DB, runs Runs, workers Workers, machine corral.SiteQueue) *Reviser {
	return &Reviser{
		lg: lg, db: db, runs: runs, workers: workers, machine: machine, idle: map[corral.GlideinID]time.Time{},
		said: map[corral.PlanID]promise{}, unread: map[corral.PlanID]time.Time{},
		stuck: map[corral.PlanID]time.Time{}, unpaced: map[corral.PlanID]time.Time{},
		budgets: map[corral.PlanID]bool{}, runsOf: map[corral.RunID]bool{},
	}
}

// period is the interval at which a plan is checked during its run; a long check is followed by a pause that is ten
// times as long.
const period = time.Second

// hurried replaces period while a pilot would otherwise have to end now because the next check would be too late: with
// more frequent checks pilots can be held longer, and a workflow that is nearly done can finish.
const hurried = 250 * time.Millisecond

// Run revises all PROVISIONED plans that should be revised, until ctx ends.
func (r *Reviser) Run(ctx context.Context) error {
	pause := period
	for {
		runs, anything := r.db.Changed(store.Subject{Object: corral.ObjectRun}), r.db.Changed(store.Subject{})
		began := time.Now()
		busy, err := r.look(ctx, pause)
		if err != nil && ctx.Err() == nil {
			r.lg.Error("revising plans failed; retrying", "error", err)
		}
		r.took = time.Since(began)
		pause = after(r.took, pause)
		if !busy && err == nil { // until there may be a plan with a run, a budget, or an allocation to keep
			select {
			case <-runs:
				continue
			case <-anything:
			case <-ctx.Done():
				return nil
			}
		}
		select { // progress is a change as well, and checks must not follow each other directly
		case <-time.After(r.next(pause)):
		case <-ctx.Done():
			return nil
		}
	}
}

// next returns the pause before plans are checked again: pause, unless a plan requires an earlier check.
func (r *Reviser) next(pause time.Duration) time.Duration {
	if r.hurry && pause <= period {
		return hurried
	}
	return pause
}

// after returns the pause that follows a check of the given duration, given the pause before the check. The decisions
// of a check are made before its duration is known, and assume that the next pause is at most twice as long as the
// previous one.
func after(took, before time.Duration) time.Duration { return min(max(period, 10*took), 2*before) }

// search returns how long a check may search for pilots to add in all plans, if a plan has a budget. A search that
// needs more time finds no pilots, but the pause after the check, and hence the next search, may be twice as long.
func search(pause time.Duration) time.Duration { return pause / 3 }

// horizon returns the latest time at which the decisions of the next check take effect, relative to a check that
// follows the given pause, where the check before the pause took the given time. The time includes this check, the next
// pause and the next check, each at most twice as long as the one before.
func horizon(pause, took time.Duration) time.Duration { return 2*pause + max(pause, 2*took) }

// look checks all plans once, and reports whether any of them has a run in progress.
func (r *Reviser) look(ctx context.Context, pause time.Duration) (busy bool, err error) {
	all, err := r.under(ctx)
	if err == nil {
		r.forget(all)
	}
	all = slices.DeleteFunc(all, func(u underway) bool { return u.run.ID == 0 && !u.budget })
	allotted := r.allotted(all, pause)
	r.hurry = false
	for _, u := range all {
		busy = true
		if err := r.revise(ctx, u, time.Now(), pause, allotted); err != nil && ctx.Err() == nil {
			r.lg.Warn("a plan could not be revised", "plan", u.plan.ID, "error", err)
		}
	}
	guarded, failed := r.allocations(ctx, pause)
	return busy || guarded, errors.Join(err, failed)
}

// allotted returns how long a check may search for pilots for each plan. A result of 0 means without limit, because no
// plan has a budget for which the next check would be too late.
func (r *Reviser) allotted(all []underway, pause time.Duration) time.Duration {
	budget := slices.ContainsFunc(all, func(u underway) bool { return u.budget })
	each := search(pause) / time.Duration(max(1, len(all)))
	switch {
	case !budget:
		return 0
	case r.hurry:
		return min(each, hurried/2)
	}
	return each
}

// underway is a plan together with its run. A plan without a run is watched for its budget only. Unless the plan is
// automatic, a run only decides when later pilots are submitted.
type underway struct {
	plan   corral.Plan
	run    corral.Run // in progress, with the plan's label; ID 0: none
	budget bool       // the plan has a budget
}

// under lists the provisioned plans, with their runs in progress. A plan that cannot be examined is
// logged and left out.
func (r *Reviser) under(ctx context.Context) ([]underway, error) {
	return store.ReadWhole(ctx, r.db, func(tx *store.WholeTx) (all []underway, err error) {
		plans, err := tx.Provisioned()
		for _, p := range plans {
			u, err := r.examine(tx.Owner(p.Owner), p)
			switch {
			case err == nil:
				all = append(all, u)
			case ctx.Err() != nil:
				return nil, err
			default:
				r.lg.Warn("a plan could not be examined", "plan", p.ID, "error", err)
			}
		}
		return all, err
	})
}

// examine looks for a plan's budget and, if the plan is automatic or has pilots that were not submitted yet, for its
// run in progress. A plan's document never changes, so each one is examined once.
func (r *Reviser) examine(tx *store.Tx, p corral.Plan) (u underway, err error) {
	u.plan = p
	budget, known := r.budgets[p.ID]
	if !known {
		if budget, err = tx.Budgeted(p.ID); err != nil {
			return u, err
		}
		r.budgets[p.ID] = budget
	}
	u.budget = budget
	if !p.Auto {
		if later, err := hasLater(tx, p); err != nil || !later {
			return u, err
		}
	}
	runs, err := tx.Runs(store.RunFilter{Labels: labelled(p)})
	for _, run := range slices.Backward(runs) {
		if run.State == corral.RunRunning {
			u.run = run
		}
	}
	return u, err
}

// revise makes one decision about a plan, searching for pilots no longer than allotted, and carries it out.
func (r *Reviser) revise(ctx context.Context, u underway, now time.Time, pause, allotted time.Duration) error {
	if !u.plan.Auto {
		r.paceManual(ctx, u, now, pause)
		if u.run = (corral.Run{}); !u.budget {
			return ctx.Err()
		}
	}
	said, ok := r.read(ctx, u, now)
	if !ok {
		return ctx.Err()
	}
	flow, progress, err := nothing, []execution.Progress(nil), error(nil)
	if u.run.ID != 0 {
		flow, progress, err = r.runs.Left(access.With(ctx, access.For(u.plan.Owner)), u.run.ID)
	}
	if err != nil {
		return err
	}
	s := sight{underway: u, promise: said, now: now, flow: flow, progress: progress,
		workers: r.workers.Workers(u.plan.Cluster)}
	err = r.db.Owner(u.plan.Owner).View(ctx, func(tx *store.Tx) error { return s.read(tx, r.machine) })
	if err != nil {
		return err
	}
	if u.run.ID != 0 {
		if err := r.pace(ctx, s, horizon(pause, r.took)); err != nil {
			return err
		}
	}
	r.note(s)
	v, err := s.view(r.idle)
	if err != nil {
		return err
	}
	d, err := r.decide(ctx, v, pause, allotted)
	if err != nil {
		return err
	}
	if !d.Empty() {
		if d, err = r.carryOut(ctx, s, v, d); err != nil {
			return err
		}
	}
	r.expect(u, d.Predicted)
	return nil
}

// nothing is the work of a plan without a run.
var nothing = &workflow.Workflow{Graph: new(dag.Graph)}

// expect reports the expected end of a run: the prediction from which a revision is made, and which it records.
func (r *Reviser) expect(u underway, p revision.Prediction) {
	if u.run.ID == 0 {
		return
	}
	var end time.Time
	if p.Complete && p.End > 0 {
		end = u.plan.BeganAt.Add(p.End)
	}
	r.runsOf[u.run.ID] = true
	r.runs.Expect(u.run.ID, end, true)
}

// decide makes a decision under the assumption that the next check follows after the given pause. If pilots would be
// ended because of the budget, it decides again under the assumption that the next check is hurried, which is
// impossible if checks take a long time.
func (r *Reviser) decide(ctx context.Context, v revision.View, pause, allotted time.Duration) (revision.Decision,
	error) {
	v.Period = horizon(pause, r.took)
	d, err := within(ctx, allotted, v)
	dear := slices.ContainsFunc(d.Drop, func(p revision.Drop) bool { return p.Why == revision.Budget })
	if err != nil || !dear || pause > period || r.took > hurried/2 {
		return d, err
	}
	r.hurry = true
	v.Period = 2 * hurried
	return within(ctx, hurried/2, v)
}

// within makes a decision, searching for pilots no longer than allotted, if set.
func within(ctx context.Context, allotted time.Duration, v revision.View) (revision.Decision, error) {
	v.Context = ctx
	if allotted > 0 {
		var cancel context.CancelFunc
		v.Context, cancel = context.WithTimeout(ctx, allotted)
		defer cancel()
	}
	return revision.Decide(v)
}

// note records when pilots became idle.
func (r *Reviser) note(s sight) {
	busy := s.busy()
	for _, g := range s.glideins {
		since, known := r.idle[g.ID]
		switch {
		case g.State.Terminal() || busy[g.ID]:
			delete(r.idle, g.ID)
		case !known || since.IsZero():
			r.idle[g.ID] = s.now
		}
	}
}
