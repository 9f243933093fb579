package provision

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/pacing"
	"github.com/corral-pilot/corral/internal/store"
)

// pace postpones the pilots of a plan that are about to be submitted, within the given time, although the run with the
// plan's label does not need them yet, and submits postponed ones that it needs.
func (r *Reviser) pace(ctx context.Context, s sight, within time.Duration) error {
	changed := s.paced(within)
	if len(changed) == 0 {
		return nil
	}
	return r.db.Owner(s.plan.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
		for _, g := range s.glideins {
			if at, ok := changed[g.ID]; ok { // nothing changes once it has been submitted
				if err := tx.RetimeGlidein(g.ID, at, pacing.Reason(g.NotBefore, at)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// hasLater reports whether a plan has pilots that wait for their time.
func hasLater(tx *store.Tx, p corral.Plan) (bool, error) {
	all, err := tx.Glideins(store.GlideinFilter{Labels: labelled(p), Live: true, InBrief: true})
	return slices.ContainsFunc(all, func(g corral.Glidein) bool {
		return !g.NotBefore.IsZero() && len(g.Attempts) == 0
	}), err
}

// paced returns the new times of the pilots that should be submitted at another time, of those that have been postponed
// or are about to be submitted, within the given time.
func (s sight) paced(within time.Duration) map[corral.GlideinID]time.Time {
	changed := map[corral.GlideinID]time.Time{}
	if s.run.ID == 0 || len(s.firsts) == 0 {
		return changed
	}
	var run *pacing.State
	var index map[string]int // :: task → its index
	for i := range s.glideins {
		g := &s.glideins[i]
		f, p, ok := s.postponable(g)
		if !ok || g.NotBefore.After(s.now.Add(within)) && !g.NotBefore.After(p.Planned) {
			continue
		}
		if run == nil {
			run, index = s.pacing()
		}
		for _, id := range f.tasks {
			if k, ok := index[id]; ok {
				p.First = append(p.First, k)
			}
		}
		if at := run.At(p, g.NotBefore).Truncate(time.Millisecond); !at.Equal(g.NotBefore) {
			changed[g.ID] = at
		}
	}
	return changed
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
func (s sight) pacing() (*pacing.State, map[string]int) {
	index := make(map[string]int, len(s.flow.Tasks))
	for i := range s.flow.Tasks {
		index[s.flow.Tasks[i].ID] = i
	}
	return &pacing.State{
		Graph: s.flow.Graph, Now: s.now, Stuck: s.stuck(),
		Hop:      clusterOf(s.cluster.Kind, s.run.Options.Stream, s.document).Hop,
		Progress: func(i int) execution.Progress { return s.progress[i] },
		Estimate: func(i int) time.Duration { return s.runtimes[s.flow.Tasks[i].ID] },
	}, index
}

// stuck reports whether tasks are ready, none runs, and no pilot has been submitted whose workers are not there yet.
func (s sight) stuck() bool {
	is := func(state corral.TaskState) bool {
		return slices.ContainsFunc(s.progress, func(p execution.Progress) bool { return p.State == state })
	}
	coming := slices.ContainsFunc(s.glideins, func(g corral.Glidein) bool {
		return slices.ContainsFunc(g.Live(), func(a corral.Job) bool { return a.Workers == 0 })
	})
	return is(corral.TaskReady) && !is(corral.TaskRunning) && !coming
}
