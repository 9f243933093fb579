package provision

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/pacing"
	"github.com/corral-pilot/corral/internal/store"
)

// pace postpones the pilots of a plan that are about to be submitted, within the given time, although the run with the
// plan's label does not need them yet, and submits postponed ones that it needs.
func (r *Reviser) pace(ctx context.Context, s sight, within time.Duration) error {
	changed := s.paced(within, r.waits(s))
	if len(changed) == 0 {
		return nil
	}
	return r.db.Owner(s.plan.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
		for i := range s.glideins {
			g := &s.glideins[i]
			at, ok := changed[g.ID]
			if !ok {
				continue
			}
			if err := tx.RetimeGlidein(g.ID, at, pacing.Reason(g.NotBefore, at)); err != nil {
				return err // nothing changes once it has been submitted
			}
			g.NotBefore = at
		}
		return nil
	})
}

// paceManual paces the pilots of a plan that is not automatic. A failure is logged at most once a minute, and does not
// prevent keeping the plan's budget.
func (r *Reviser) paceManual(ctx context.Context, u underway, now time.Time, pause time.Duration) {
	if failed, ok := r.unpaced[u.plan.ID]; u.run.ID == 0 || ok && now.Sub(failed) < readAgain {
		return
	}
	if err := r.paceRun(ctx, u, now, horizon(pause, r.took)); err != nil && ctx.Err() == nil {
		r.unpaced[u.plan.ID] = now
		r.lg.Warn("the later pilots of a plan are submitted by the clock", "plan", u.plan.ID, "error", err)
	}
}

func (r *Reviser) paceRun(ctx context.Context, u underway, now time.Time, within time.Duration) (err error) {
	s := sight{underway: u, now: now}
	said, known := r.said[u.plan.ID]
	err = r.db.Owner(u.plan.Owner).View(ctx, func(tx *store.Tx) error {
		if s.cluster, err = tx.Cluster(u.plan.Cluster); err != nil {
			return err
		}
		s.glideins, err = tx.Glideins(store.GlideinFilter{Labels: labelled(u.plan), Live: true, InBrief: true})
		if err == nil && said.runtimes == nil {
			u.plan, err = tx.Plan(u.plan.ID)
		}
		return err
	})
	if err == nil && (!known || said.runtimes == nil) {
		if said, err = promised(r.db, u.plan, true); err == nil {
			r.said[u.plan.ID] = said
		}
	}
	if err != nil {
		return err
	}
	s.promise = said
	if !slices.ContainsFunc(s.glideins, func(g corral.Glidein) bool { return s.undecided(&g, within) }) {
		return nil
	}
	s.flow, s.progress, err = r.runs.Left(access.With(ctx, access.For(u.plan.Owner)), u.run.ID)
	if err != nil {
		return err
	}
	return r.pace(ctx, s, within)
}

// hasLater reports whether a plan has pilots that wait for their time.
func hasLater(tx *store.Tx, p corral.Plan) (bool, error) {
	all, err := tx.Glideins(store.GlideinFilter{Labels: labelled(p), Live: true, InBrief: true})
	return slices.ContainsFunc(all, func(g corral.Glidein) bool {
		return !g.NotBefore.IsZero() && g.Follows == 0 && len(g.Attempts) == 0
	}), err
}

// paced returns the new times of the pilots that should be submitted at another time. A pilot is postponed only when it
// is about to be submitted, within the given time: until then the forecast may change with each second.
func (s sight) paced(within time.Duration, stuck bool) map[corral.GlideinID]time.Time {
	changed := map[corral.GlideinID]time.Time{}
	var run *pacing.State
	var index map[string]int // :: task → its index
	for i := range s.glideins {
		g := &s.glideins[i]
		if !s.undecided(g, within) {
			continue
		}
		if run == nil {
			run, index = s.pacing(stuck)
		}
		f, p, _ := s.postponable(g)
		for _, id := range f.tasks {
			if k, ok := index[id]; ok {
				p.First = append(p.First, k)
			}
		}
		at := run.At(p, g.NotBefore).Truncate(time.Millisecond)
		if later := at.After(g.NotBefore); at.Before(g.NotBefore) || later && !g.NotBefore.After(s.now.Add(within)) {
			changed[g.ID] = at
		}
	}
	return changed
}

// undecided reports whether a pilot waits for its time, and has been postponed or is about to be submitted.
func (s sight) undecided(g *corral.Glidein, within time.Duration) bool {
	_, p, ok := s.postponable(g)
	return ok && g.NotBefore.After(s.now) && (g.NotBefore.After(p.Planned) || !g.NotBefore.After(s.now.Add(within)))
}

// postponable returns the first tasks of a pilot that was planned for later and has not been submitted.
func (s sight) postponable(g *corral.Glidein) (f first, p pacing.Later, ok bool) {
	number, err := strconv.Atoi(g.Labels["pilot"])
	if f, ok = s.firsts[number]; err != nil || !ok || g.NotBefore.IsZero() || g.Follows != 0 || len(g.Attempts) > 0 ||
		g.Asked != corral.AskNothing || g.State.Terminal() {
		return f, p, false
	}
	return f, pacing.Later{Lead: f.lead, Planned: s.plan.BeganAt.Add(f.submit)}, true
}

// pacing returns the progress of the run, and the indices of its tasks.
func (s sight) pacing(stuck bool) (*pacing.State, map[string]int) {
	index := make(map[string]int, len(s.flow.Tasks))
	for i := range s.flow.Tasks {
		index[s.flow.Tasks[i].ID] = i
	}
	return &pacing.State{
		Graph: s.flow.Graph, Now: s.now, Stuck: stuck,
		Hop:      clusterOf(s.cluster.Kind, s.run.Options.Stream, s.document).Hop,
		Progress: func(i int) execution.Progress { return s.progress[i] },
		Estimate: func(i int) time.Duration { return s.runtimes[s.flow.Tasks[i].ID] },
	}, index
}

// waits reports whether a plan's run has been waiting for pilots for a while although none comes.
func (r *Reviser) waits(s sight) bool {
	if !s.waits() {
		delete(r.stuck, s.plan.ID)
		return false
	}
	if _, ok := r.stuck[s.plan.ID]; !ok {
		r.stuck[s.plan.ID] = s.now
	}
	return s.now.Sub(r.stuck[s.plan.ID]) >= pacing.Patience
}

// waits reports whether tasks are ready, none runs, and no pilot is due whose workers are not there yet.
func (s sight) waits() bool {
	is := func(state corral.TaskState) bool {
		return slices.ContainsFunc(s.progress, func(p execution.Progress) bool { return p.State == state })
	}
	coming := slices.ContainsFunc(s.glideins, func(g corral.Glidein) bool {
		live := g.Live()
		if len(live) == 0 {
			return !g.State.Terminal() && g.Asked == corral.AskNothing && !g.NotBefore.After(s.now)
		}
		return slices.ContainsFunc(live, func(a corral.Job) bool {
			return a.Workers == 0 && a.Asked == corral.AskNothing
		})
	})
	return is(corral.TaskReady) && !is(corral.TaskRunning) && !coming
}
