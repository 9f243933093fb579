package planning

// The queues that a plan is sought in. A look at one is a command or two at its site, so that only algorithms take it
// that know what to do with it; what it shows is as old as the plan, and is not followed afterwards.

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
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// Queues tells who holds the processors of a site's queue, and who waits for them.
type Queues interface {
	Backlog(ctx context.Context, site corral.Site, queue string) (corral.Backlog, error)
}

// question is what an algorithm is asked, with what is to be said of the queues that were looked at for it. One that
// goes by waits alone looks at none: it costs the site a command each time.
func (d *Desk) question(ctx context.Context, p plan.Problem, in api.NewPlan, facts []provision.Facts) (
	q algorithm.Question, said []string, err error,
) {
	now := time.Now()
	m := montecarlo.Model{Problem: p, Spread: montecarlo.DefaultSpread, Queues: montecarlo.Queues{}}
	if in.Error != "" {
		if m.Spread, err = sim.ParseSpread(in.Error); err != nil {
			return q, nil, corral.ErrorAt(corral.Invalid, "error", "%w", err)
		}
	}
	q = algorithm.Question{Goal: in.Goal, Odds: func(site, name string) virtual.Predictor {
		return odds(facts, site, name, now)
	}}
	if in.Algorithm == "" || in.Algorithm == plan.Staircase || in.Algorithm == plan.VAR {
		q.Model = m
		return q, nil, nil
	}
	for i, seen := range d.look(ctx, m.Sites, facts) {
		s := &m.Sites[i]
		switch {
		case ctx.Err() != nil:
			return q, nil, context.Cause(ctx)
		case seen.err != nil:
			said = append(said, fmt.Sprintf("who is in line at site %s is not known, and its waits are "+
				"planned with: %s", s.Name, seen.err))
		case seen.is != nil:
			line := queue.Of(*seen.is)
			m.Queues[[2]string{s.Name, s.Queue}], s.Room = line, queue.Unplanned(line).From(line.Now())
			said = append(said, fmt.Sprintf("in queue %s at site %s %d jobs ran and %d were in line", seen.is.Queue,
				s.Name, len(seen.is.Running), len(seen.is.Waiting)))
		}
	}
	q.Model = m
	return q, said, nil
}

// A seen is a queue as a site has shown it; neither backlog nor error: the site has no queue.
type seen struct {
	is  *corral.Backlog
	err error
}

// look looks at the queues of sites, all at once: one that does not answer takes a minute.
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

// odds predicts, by the waits of a queue, whether pilots start in time; nil where no wait is known.
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
