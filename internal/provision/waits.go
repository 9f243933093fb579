package provision

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// waits answers with the waits of like shapes: those of the queue with at least half and at most twice as many cpus,
// else all of the queue; none are known without records. What was asked for once is kept, because simulations ask for
// each pilot of each outcome, from several goroutines.
func (f Facts) waits(queue string, c Caution, now time.Time) plan.Waits {
	var here []corral.Wait
	for _, w := range f.Waits {
		if asked := cmp.Or(w.Queue, w.Default); asked == "" || queue == "" || asked == queue {
			here = append(here, w)
		}
	}
	if len(here) == 0 {
		return nil
	}
	var mu sync.Mutex
	known := map[int]plan.Spread{} // :: cpus → waits; guarded by mu
	return func(shape plan.Shape, share float64) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		cpus := shape.Hosts * shape.Host.CPUs
		spread, ok := known[cpus]
		if !ok {
			spread = spreadOf(like(here, cpus), c, now)
			known[cpus] = spread
		}
		return spread.At(share)
	}
}

// assumed is the wait that a share does not exceed; none where nothing is known.
func assumed(of plan.Waits, share float64) plan.Wait {
	return func(shape plan.Shape) time.Duration {
		if of == nil {
			return 0
		}
		return of(shape, share)
	}
}

// like returns the waits of pilots with at least half and at most twice so many cpus, all if there are none.
func like(waits []corral.Wait, cpus int) []corral.Wait {
	near := slices.DeleteFunc(slices.Clone(waits), func(w corral.Wait) bool {
		return w.Hosts*w.CPUs > 2*cpus || 2*w.Hosts*w.CPUs < cpus
	})
	if len(near) == 0 {
		return waits
	}
	return near
}

// A Caution is what is assumed of waits, and of the times that pilots take to start up.
type Caution struct {
	Share float64 // of them does not exceed what is planned with
	Bound bool    // waits are bounds, which the true quantiles hardly exceed, and not estimates, which they may
}

// CautionOf returns what plans for a goal assume, of which a share is planned with: a plan that promises a confidence
// rests on bounds.
func CautionOf(goal plan.Goal, share float64) Caution { return Caution{share, goal.Confidence > 0} }

// spreadOf is how waits are spread. Of those that have not ended yet it is known that they are longer than so far: the
// longest quantiles may be longer in truth than what is known of them.
func spreadOf(waits []corral.Wait, c Caution, now time.Time) plan.Spread {
	quantile := corral.WaitQuantile
	if c.Bound {
		quantile = corral.WaitBound
	}
	return plan.NewSpread(func(share float64) time.Duration {
		return time.Duration(quantile(waits, share, now).Wait).Round(time.Millisecond)
	})
}

// fewWaits says, for the reasons of a plan that rests on bounds, that the site has seen too few waits for one.
func (f Facts) fewWaits(c Caution) []string {
	need := corral.BoundNeeds(c.Share)
	if !c.Bound || len(f.Waits) == 0 || len(f.Waits) >= need {
		return nil
	}
	return []string{fmt.Sprintf("%s at site %s: for a bound that a share of %g does not exceed it takes %d; "+
		"the longest wait that was seen stands for it", counted(len(f.Waits), "wait"), f.Site.Name, c.Share, need)}
}
