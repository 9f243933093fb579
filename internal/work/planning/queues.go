package planning

// Some algorithms examine the queues of sites. This takes one or two commands per site, so it is done only for
// algorithms that use the result. The result has the age of the plan, and is not updated afterwards.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
)

// Queues reports the running and the waiting jobs of a site's queue, and predicts waits there.
type Queues interface {
	Backlog(ctx context.Context, site corral.Site, queue string) (corral.Backlog, error)
	// Forecast returns those of the shapes for which the batch system predicts a wait, their waits, and the source.
	Forecast(ctx context.Context, site corral.Site, queue string, shapes []corral.Shape) (
		known []corral.Shape, waits []corral.Seconds, source string, err error)
}

// question returns the input of an algorithm, and sentences about the queues that were examined for it. It completes
// in.Algorithm. Algorithms that use only waits do not examine queues, which costs a command at the site.
// measured reports whether the errors of all kinds of tasks were measured.
func (d *Desk) question(ctx context.Context, p plan.Problem, in *api.NewPlan, facts []provision.Facts, measured bool) (
	q algorithm.Question, said []string, err error,
) {
	now := time.Now()
	m := montecarlo.Model{Problem: p, Queues: montecarlo.Queues{}}
	if !measured {
		m.Spread = montecarlo.DefaultSpread
	}
	if in.Error != "" {
		m.Errors = nil
		if m.Spread, err = sim.ParseSpread(in.Error); err != nil {
			return q, nil, corral.ErrorAt(corral.Invalid, "error", "%w", err)
		}
	}
	q = algorithm.Question{Goal: in.Goal, Odds: func(site, name string) virtual.Predictor {
		return odds(facts, site, name, now)
	}}
	if in.GivesWaits() { // they replace what the queues and past waits would show
		q.Odds = nil
	}
	usual := in.Algorithm == ""
	if usual {
		in.Algorithm = algorithm.Usual(len(p.Work.Tasks))
	}
	if in.GivesWaits() || in.Algorithm == plan.Staircase || in.Algorithm == plan.VAR {
		q.Model, in.Algorithm = m, withoutQueues(in.Algorithm, usual)
		if in.Hedge && !in.GivesWaits() { // only second pilots use the queues
			rooms := m
			rooms.Sites, rooms.Queues = slices.Clone(m.Sites), montecarlo.Queues{}
			said, err = d.addQueues(ctx, &rooms, facts)
			q.Queued = rooms.Sites
		}
		return q, said, err
	}
	if said, err = d.addQueues(ctx, &m, facts); err != nil {
		return q, nil, err
	}
	if len(m.Queues) == 0 {
		in.Algorithm = withoutQueues(in.Algorithm, usual)
	}
	q.Model = m
	return q, said, nil
}

// addQueues adds to a model the queues of its sites, and their rooms, as they are now. It returns sentences about them.
func (d *Desk) addQueues(ctx context.Context, m *montecarlo.Model, facts []provision.Facts) (said []string, err error) {
	for i, seen := range d.look(ctx, m.Sites, facts) {
		s := &m.Sites[i]
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case seen.err != nil:
			said = append(said, fmt.Sprintf("the queue of site %s is unknown, so the plan uses its past "+
				"waits: %s", s.Name, seen.err))
		case seen.is != nil:
			line := queuemodel.Of(*seen.is)
			m.Queues[[2]string{s.Name, s.Queue}], s.Room = line.Line(), line.Room()
			if closed, ok := provision.ClosedNow(*seen.is, s.Margin); ok { // the last survey may be old
				s.Closed = closed
			}
			said = append(said, fmt.Sprintf("in queue %s at site %s, %d jobs ran and %d waited", seen.is.Queue,
				s.Name, len(seen.is.Running), len(seen.is.Waiting)))
		}
	}
	return said, nil
}

// withoutQueues returns the algorithm for sites whose queues are unknown: the usual one is then the one that needs
// none.
func withoutQueues(by plan.Algorithm, usual bool) plan.Algorithm {
	if usual {
		return plan.Staircase
	}
	return by
}

// A seen is the state of a site's queue, or an error; if it has neither, the site does not have a queue.
type seen struct {
	is  *corral.Backlog
	err error
}

// look examines the queues of sites in parallel, because a site that does not answer takes a minute.
func (d *Desk) look(ctx context.Context, sites []plan.Site, facts []provision.Facts) []seen {
	all := make([]seen, len(sites))
	var wg sync.WaitGroup
	for i, s := range sites {
		k := slices.IndexFunc(facts, func(f provision.Facts) bool { return f.Site.Name == s.Name })
		if facts[k].Site.System().Queueless {
			continue
		}
		wg.Go(func() {
			b, err := d.queues.Backlog(ctx, facts[k].Site, s.Queue)
			if all[i].err = err; err == nil {
				all[i].is = &b
			}
		})
	}
	wg.Wait()
	return all
}

// odds predicts whether pilots start in time from the waits of a queue; it returns nil if no waits are known.
func odds(facts []provision.Facts, site, name string, now time.Time) virtual.Predictor {
	for _, f := range facts {
		waits := queueing.In(name, f.Waits)
		if f.Site.Name != site || len(waits) == 0 {
			continue
		}
		p := queueing.NewPredictor(waits, now)
		return func(processors int, walltime, within time.Duration) float64 {
			share, _ := p.Estimate(processors, walltime, within)
			return share
		}
	}
	return nil
}
