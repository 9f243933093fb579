package provision

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// waits answers with the waits of like shapes: those of the queue with at least half and at most twice as many cpus,
// else all of the queue; none are known without records. What was asked for once is kept, because simulations ask for
// each pilot of each outcome, from several goroutines.
func (f Facts) waits(queue string, now time.Time) plan.Waits {
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
			spread = spreadOf(like(here, cpus), now)
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

// spreadOf is how waits are spread. Of those that have not ended yet it is known that they are longer than so far: the
// longest quantiles may be longer in truth than what is known of them.
func spreadOf(waits []corral.Wait, now time.Time) plan.Spread {
	return plan.NewSpread(func(share float64) time.Duration {
		return time.Duration(corral.WaitQuantile(waits, share, now).Wait).Round(time.Millisecond)
	})
}
