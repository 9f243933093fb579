package provision

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow"
)

// Runs returns the remaining work of runs; run.Manager implements it.
type Runs interface {
	Left(context.Context, corral.RunID) (*workflow.Workflow, []execution.Progress, error)
}

// Workers returns the present workers of a cluster; admission.Clusters implements it. It does not use the store, so
// that it can be called within a transaction.
type Workers interface {
	Workers(corral.ClusterID) []corral.Worker
}

// A Reviser revises plans during their runs. Everything on which its decisions depend is read again for each
// decision, from the store and from the run, except for the plan's document, which never changes. It also remembers
// which documents cannot be read and how long pilots have been idle, but relearns that after a restart. So it may be
// killed at any time.
type Reviser struct {
	lg      *slog.Logger
	db      *store.DB
	runs    Runs
	workers Workers
	machine corral.SiteQueue // this machine

	idle   map[corral.GlideinID]time.Time // since when it has been observed without a task
	said   map[corral.PlanID]promise      // of plans that are in progress
	unread map[corral.PlanID]time.Time    // when reading its promise failed
	hurry  bool                           // a plan is so near its budget that the next look must come sooner
	took   time.Duration                  // duration of the previous look
}

// NewReviser returns a reviser. machine is this machine, as the fork batch system's queue here.
func NewReviser(lg *slog.Logger, db *store.DB, runs Runs, workers Workers, machine corral.SiteQueue) *Reviser {
	return &Reviser{
		lg: lg, db: db, runs: runs, workers: workers, machine: machine, idle: map[corral.GlideinID]time.Time{},
		said: map[corral.PlanID]promise{}, unread: map[corral.PlanID]time.Time{},
	}
}

// period is how often a plan is looked at during its run; a long look is followed by a pause that is ten times as
// long.
const period = time.Second

// hurried replaces period while a pilot would otherwise have to end now because the next look comes too late: sooner
// looks allow pilots to be held longer, and a workflow that is nearly done to finish.
const hurried = 250 * time.Millisecond

// Run revises all PROVISIONED plans that should be revised, until ctx ends.
func (r *Reviser) Run(ctx context.Context) error {
	pause := period
	for {
		changed := r.db.Changed(store.Subject{Object: corral.ObjectRun})
		began := time.Now()
		busy, err := r.look(ctx, pause)
		if err != nil && ctx.Err() == nil {
			r.lg.Error("revising plans failed; retrying", "error", err)
		}
		r.took = time.Since(began)
		pause = after(r.took, pause)
		var next <-chan time.Time
		if busy || err != nil {
			next = time.After(r.next(pause))
			changed = nil // progress is a change, too: looks keep their distance
		}
		select {
		case <-changed:
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

// next returns the pause before plans are looked at again, which is pause if none is in a hurry.
func (r *Reviser) next(pause time.Duration) time.Duration {
	if r.hurry && pause <= period {
		return hurried
	}
	return pause
}

// after returns the pause after a look with this duration, given the pause before it. The decisions of a look are
// made before its duration is known, and assume a pause of at most twice the one before.
func after(took, before time.Duration) time.Duration { return min(max(period, 10*took), 2*before) }

// search returns how long a look may search for pilots to add in all plans, if one has a budget. A search that needs
// longer finds none; but the pause after it, and with it the next search, may be twice as long.
func search(pause time.Duration) time.Duration { return pause / 3 }

// horizon returns the latest time at which the decisions of the next look take effect, counted from a look after this
// pause, if the look before took this long: this look, the next pause and the next look, each of at most twice the
// length.
func horizon(pause, took time.Duration) time.Duration { return 2*pause + max(pause, 2*took) }

// look looks at all plans once, and reports whether one has a run in progress.
func (r *Reviser) look(ctx context.Context, pause time.Duration) (busy bool, err error) {
	all, err := store.ReadWhole(ctx, r.db, under)
	r.forget(all)
	allotted := r.allotted(ctx, all, pause)
	r.hurry = false
	for _, u := range all {
		busy = true
		if err := r.revise(ctx, u, time.Now(), pause, allotted); err != nil && ctx.Err() == nil {
			r.lg.Warn("a plan could not be revised", "plan", u.plan.ID, "error", err)
		}
	}
	return busy, err
}

// allotted returns how long a look may search for pilots for each plan; 0: without limit, because no plan has a
// budget for which the next look would come too late.
func (r *Reviser) allotted(ctx context.Context, all []underway, pause time.Duration) time.Duration {
	budget := slices.ContainsFunc(all, func(u underway) bool {
		said, ok := r.read(ctx, u.plan, time.Now())
		return ok && said.document.Goal.Budget != nil
	})
	each := search(pause) / time.Duration(max(1, len(all)))
	switch {
	case !budget:
		return 0
	case r.hurry:
		return min(each, hurried/2)
	}
	return each
}

// underway is a plan with its run.
type underway struct {
	plan corral.Plan
	run  corral.Run
}

// under lists the plans to revise, each with its run in progress.
func under(tx *store.WholeTx) (all []underway, err error) {
	plans, err := tx.Provisioned()
	for _, p := range plans {
		if err != nil || !p.Auto {
			continue
		}
		var runs []corral.Run
		runs, err = tx.Owner(p.Owner).Runs(store.RunFilter{Labels: labelled(p)})
		for _, run := range runs {
			if run.State == corral.RunRunning {
				all = append(all, underway{p, run})
				break
			}
		}
	}
	return all, err
}

// revise makes one decision about a plan, searching for pilots no longer than allotted, and carries it out.
func (r *Reviser) revise(ctx context.Context, u underway, now time.Time, pause, allotted time.Duration) error {
	said, ok := r.read(ctx, u.plan, now)
	if !ok {
		return ctx.Err()
	}
	flow, progress, err := r.runs.Left(access.With(ctx, access.For(u.plan.Owner)), u.run.ID)
	if err != nil {
		return err
	}
	s := sight{underway: u, promise: said, now: now, flow: flow, progress: progress,
		workers: r.workers.Workers(u.plan.Cluster)}
	err = r.db.Owner(u.plan.Owner).View(ctx, func(tx *store.Tx) error { return s.read(tx, r.machine) })
	if err != nil {
		return err
	}
	r.note(s)
	v, err := s.view(r.idle)
	if err != nil {
		return err
	}
	d, err := r.decide(ctx, v, pause, allotted)
	if err != nil || d.Empty() {
		return err
	}
	return r.carryOut(ctx, s, v, d)
}

// decide makes a decision if the next look comes after a pause. If pilots would be ended because of the budget, it
// decides again under the assumption that the next look is hurried, which is impossible if looks take long.
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

// note records since when pilots have been idle.
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
