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

// Runs tells what is left of runs: run.Manager does.
type Runs interface {
	Left(context.Context, corral.RunID) (*workflow.Workflow, []execution.Progress, error)
}

// Workers tells of the workers that are there: admission.Clusters does. It does not ask the store, so that it can be
// asked within a transaction.
type Workers interface {
	Workers(corral.ClusterID) []corral.Worker
}

// A Reviser revises plans while their runs go on. All that it decides by is read again for each decision, from the
// store and from the run, but for the plan's document, which never changes; what it remembers besides, which documents
// cannot be read and for how long pilots have been seen idle, it learns again after a restart. So it may be killed at
// any time.
type Reviser struct {
	lg      *slog.Logger
	db      *store.DB
	runs    Runs
	workers Workers
	machine corral.SiteQueue // this one

	idle   map[corral.GlideinID]time.Time // since when it has been seen without a task
	said   map[corral.PlanID]promise      // of plans that are under way
	unread map[corral.PlanID]time.Time    // when reading what it promised failed
	hurry  bool                           // a plan is so near its budget that it has to be looked at sooner
	took   time.Duration                  // the look before
}

// NewReviser returns a reviser. machine is this machine, as the queue that the batch system fork has here.
func NewReviser(lg *slog.Logger, db *store.DB, runs Runs, workers Workers, machine corral.SiteQueue) *Reviser {
	return &Reviser{
		lg: lg, db: db, runs: runs, workers: workers, machine: machine, idle: map[corral.GlideinID]time.Time{},
		said: map[corral.PlanID]promise{}, unread: map[corral.PlanID]time.Time{},
	}
}

// period is how often a plan is looked at while its run goes on; a look that takes long is followed by a pause ten
// times as long.
const period = time.Second

// hurried is how often it is while a pilot would have to end now if the next look came after a period: pilots may be
// held for longer if it comes sooner, and a workflow that is nearly done gets done.
const hurried = 250 * time.Millisecond

// Run revises all PROVISIONED plans that are to be, until ctx ends.
func (r *Reviser) Run(ctx context.Context) error {
	pause := period
	for {
		changed := r.db.Changed(store.Subject{Object: corral.ObjectRun})
		began := time.Now()
		busy, err := r.look(ctx, pause)
		if err != nil && ctx.Err() == nil {
			r.lg.Error("revising plans: it is tried again", "error", err)
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

// next is when plans are looked at again, if none is in a hurry after so long.
func (r *Reviser) next(pause time.Duration) time.Duration {
	if r.hurry && pause <= period {
		return hurried
	}
	return pause
}

// after is the pause after a look that took so long, when the one before it was so long. The decisions of a look are
// made before its length is known, and reckon with a pause that is twice the one before.
func after(took, before time.Duration) time.Duration { return min(max(period, 10*took), 2*before) }

// search is how long pilots to add may be sought in all plans of a look, if one has a budget. A search that needs more
// finds none; but the pause after it, and with it the next search, may be twice as long.
func search(pause time.Duration) time.Duration { return pause / 3 }

// horizon is when the decisions of the next look take hold at the latest, after a look that began after a pause, when
// the look before it took so long: this look, the next pause and the next look, each of twice the length at most.
func horizon(pause, took time.Duration) time.Duration { return 2*pause + max(pause, 2*took) }

// look looks at all plans once, and reports whether one has a run that goes on.
func (r *Reviser) look(ctx context.Context, pause time.Duration) (busy bool, err error) {
	all, err := store.ReadWhole(ctx, r.db, under)
	r.forget(all)
	allotted := r.allotted(ctx, all, pause)
	r.hurry = false
	for _, u := range all {
		busy = true
		if err := r.revise(ctx, u, time.Now(), pause, allotted); err != nil && ctx.Err() == nil {
			r.lg.Warn("a plan is not revised now", "plan", u.plan.ID, "error", err)
		}
	}
	return busy, err
}

// allotted is how long pilots may be sought for each plan of a look; 0: as long as it takes, as no plan has a budget
// that the next look would come too late for.
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

// under lists the plans that are to be revised, each with the run that goes on.
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

// revise makes one decision about a plan, for which it seeks pilots no longer than allotted, and carries it out.
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

// decide decides what is to change when the next look comes after a pause. If pilots were to go for the budget's sake,
// it asks whether they are to even if the next look is hurried. Looks that take long cannot be.
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

// within decides, and seeks pilots no longer than allotted, if there is one.
func within(ctx context.Context, allotted time.Duration, v revision.View) (revision.Decision, error) {
	v.Context = ctx
	if allotted > 0 {
		var cancel context.CancelFunc
		v.Context, cancel = context.WithTimeout(ctx, allotted)
		defer cancel()
	}
	return revision.Decide(v)
}

// note remembers since when pilots have been idle.
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
