package provision

import (
	"fmt"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan"
)

// waits returns a function that returns the waits of pilots of a similar shape: the waits in the queue for at least
// half and at most twice as many cpus or, if there are none, all waits in the queue; of these, the waits of the same
// class of walltimes if there are enough. Without records no waits are known. Results are cached, because simulations
// request them for each pilot of each outcome, from several goroutines.
func (f Facts) waits(queue string, c Caution, now time.Time) plan.Waits {
	return waitsOf(queueing.In(queue, f.Waits), c, now)
}

// waitsOf implements Facts.waits for the waits of a queue.
func waitsOf(here []corral.Wait, c Caution, now time.Time) plan.Waits {
	if len(here) == 0 {
		return nil
	}
	var mu sync.Mutex
	type kind struct{ cpus, class int }
	known := map[kind]plan.Spread{} // guarded by mu
	return func(shape plan.Shape, share float64) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		k := kind{shape.Hosts * shape.Host.CPUs, corral.WalltimeClass(corral.Seconds(shape.Walltime))}
		spread, ok := known[k]
		if !ok {
			spread = spreadOf(c.asLong(c.like(here, k.cpus), k.class), c, now)
			known[k] = spread
		}
		return spread.At(share)
	}
}

// assumed returns the wait that a share of the waits does not exceed, or no wait if nothing is known.
func assumed(of plan.Waits, share float64) plan.Wait {
	return func(shape plan.Shape) time.Duration {
		if of == nil {
			return 0
		}
		return of(shape, share)
	}
}

// like returns the waits of pilots with at least half and at most twice as many cpus, or all waits if there are no such
// waits, or too few for a requested bound.
func (c Caution) like(waits []corral.Wait, cpus int) []corral.Wait {
	near := queueing.Near(cpus, waits)
	if len(near) == 0 || c.Bound && !c.bounds(near) {
		return waits
	}
	return near
}

// leastOfClass is the number of waits that ended with a start from which on a class of walltimes is judged by itself.
const leastOfClass = 20

// asLong returns the waits of pilots of a class of walltimes, or all waits if the class has too few. Bounds always
// use all: those of a single class did not hold on a year of waits (bench/evidence), because queues change meanwhile.
func (c Caution) asLong(waits []corral.Wait, class int) []corral.Wait {
	if c.Bound {
		return waits
	}
	same, started := []corral.Wait{}, 0
	for _, w := range waits {
		if corral.WalltimeClass(w.Walltime) == class {
			if same = append(same, w); !w.StartedAt.IsZero() {
				started++
			}
		}
	}
	if started < leastOfClass {
		return waits
	}
	return same
}

// bounds reports whether there are enough waits to compute a bound.
func (c Caution) bounds(waits []corral.Wait) bool {
	return queueing.BoundRests(waits, c.Share) >= queueing.BoundNeeds(c.Share)
}

// A Caution determines the assumed waits, and the assumed start-up times of pilots.
type Caution struct {
	Share float64 // the share of waits that do not exceed the planned wait
	Bound bool    // waits are bounds, which the true quantiles rarely exceed, instead of estimates
}

// CautionOf returns the assumptions for plans with the given goal and share. A plan that promises a confidence uses
// bounds.
func CautionOf(goal plan.Goal, share float64) Caution { return Caution{share, goal.Confidence > 0} }

// spreadOf returns the distribution of waits. Waits that have not ended yet will be longer than they are so far, so the
// true values of the longest quantiles may exceed the known values.
func spreadOf(waits []corral.Wait, c Caution, now time.Time) plan.Spread {
	quantile := queueing.Quantile
	if c.Bound {
		quantile = queueing.Bound
	}
	return c.ascending(plan.NewSpread(func(share float64) time.Duration {
		return time.Duration(quantile(waits, share, now).Wait).Round(time.Millisecond)
	}))
}

// ascending makes quantiles ascend. Estimates always ascend, but bounds may not: the bound for a larger share is based
// on more waits, and those may be shorter. The quantile used for planning stays the same; for a larger share the
// longest bound so far applies, and for a smaller one the shortest from there on, because a bound on a quantile also
// bounds all lower quantiles.
func (c Caution) ascending(s plan.Spread) plan.Spread {
	planned := int(c.Share * float64(len(s)-1))
	for i := planned + 1; i < len(s); i++ {
		s[i] = max(s[i], s[i-1])
	}
	for i := planned - 1; i >= 0; i-- {
		s[i] = min(s[i], s[i+1])
	}
	return s
}

// fewWaits explains, as part of the reasons of a plan that is based on bounds, that a queue has too few waits for a
// bound.
func (f Facts) fewWaits(c Caution, queue string) []string {
	here := queueing.In(queue, f.Waits)
	if !c.Bound || len(here) == 0 || c.bounds(here) {
		return nil
	}
	where := "at site " + f.Site.Name
	if queue != "" {
		where = "in queue " + queue + " " + where
	}
	return []string{fmt.Sprintf("%s ended with a start %s: "+
		"a bound that a share of %g does not exceed needs %d; the longest observed wait is used instead",
		counted(queueing.BoundRests(here, c.Share), "wait"), where, c.Share, queueing.BoundNeeds(c.Share))}
}
