package condorpool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
)

// An attempt is one that may have workers.
type attempt struct {
	corral.Job
	cluster  corral.ClusterID
	hosts    int    // each of which runs a worker
	identity string // who its workers are to the pool; "" if they may be anybody
}

// A view is what the keeper knows of the collector's answers.
type view struct {
	at      time.Time // when the collector was last asked
	heard   time.Time // when it last answered
	changed time.Time // when workers or attempts last changed
	live    []corral.JobID
	rest    time.Duration // from then on it is left in peace
	silent  bool          // it does not answer, and that was said
}

// How often the collector is asked. A question costs it and us some 40 ms of a processor.
const (
	lookFast  = 300 * time.Millisecond // while somebody waits for workers
	lookSlow  = 3 * time.Second        // to see which of them are busy
	lookShare = 4                      // a question takes at most one of so many parts of the time
	lookNever = time.Hour              // without an attempt there is nobody to see: the store wakes the keeper
)

// How long it is asked at the fast pace: after a change, and from when an attempt last changed while it lacks workers. An
// attempt may wait in a site's queue for days.
const (
	fastAfterChange  = 3 * time.Second
	fastAfterAttempt = time.Minute
)

// look asks the collector for workers if it is time to, and returns when that will be next.
func (k *keeper) look(ctx context.Context, c corral.Cluster, live []attempt) time.Duration {
	now := time.Now()
	ids := make([]corral.JobID, len(live))
	for i, a := range live {
		ids[i] = a.ID
	}
	if !slices.Equal(ids, k.view.live) {
		k.view.live, k.view.changed = ids, now
		k.show(ofAttempts(k.known(), live)) // also where nobody is asked any longer
	}
	if wait := time.Until(k.view.at.Add(max(k.pace(now, live), k.view.rest))); wait > 0 {
		return wait
	}
	k.ask(ctx, c, live)
	k.view.rest = min(lookSlow, lookShare*time.Since(now))
	return max(k.pace(time.Now(), live), k.view.rest)
}

// pace returns how long after a question the next one is due.
func (k *keeper) pace(now time.Time, live []attempt) time.Duration {
	if len(live) == 0 {
		return lookNever
	}
	if now.Before(k.view.changed.Add(fastAfterChange)) {
		return lookFast
	}
	registered := map[corral.JobID]int{}
	for _, w := range k.known() {
		if w.Connected {
			registered[w.Attempt]++
		}
	}
	for _, a := range live {
		if registered[a.ID] < a.hosts && now.Before(a.UpdatedAt.Add(fastAfterAttempt)) {
			return lookFast
		}
	}
	return lookSlow
}

// ask asks the collector for the cluster's slots.
func (k *keeper) ask(ctx context.Context, c corral.Cluster, live []attempt) {
	tools, ok := k.commands()
	if !ok || len(live) == 0 {
		return
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ads, err := tools.Query(asking, "condor_status", []string{"-constraint", slotsOf(c.Name, heardWithin)}, slotAttributes)
	now := time.Now()
	if ctx.Err() != nil {
		return
	}
	k.view.at = now
	if err != nil && !k.view.silent {
		k.lg.Warn("the collector does not answer", "err", err)
	}
	k.view.silent = err != nil
	k.sick = k.sick || err != nil // so that its health is asked for soon
	watched := now.Sub(k.view.heard) < 2*lookSlow
	if err == nil {
		k.view.heard = now
	}
	if k.show(merge(k.known(), workersOf(ads, live), now, watched)) {
		k.view.changed = now
	}
}

// heardWithin is how old a slot's last word may be. A worker speaks at least every 14 s (internal/pilot); one that was killed
// cannot take back what it said, and a collector that is not ours would believe it for 15 minutes.
const heardWithin = 2 * time.Minute

// slotsOf is true of the slots of a cluster. Their age is for the collector to judge, whose clock dates their words.
func slotsOf(cluster string, within time.Duration) string {
	return fmt.Sprintf("CorralCluster == %s && CorralAttempt isnt undefined && LastHeardFrom >= time() - %d",
		condor.FormatNew(cluster), int64(within/time.Second))
}

// known returns a copy of the workers.
func (k *keeper) known() []corral.Worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.workers)
}

// show makes workers what is known from now on, and reports whether that changed.
func (k *keeper) show(workers []corral.Worker) bool {
	k.mu.Lock()
	changed := !slices.EqualFunc(k.workers, workers, func(a, b corral.Worker) bool {
		a.SeenAt = b.SeenAt
		return a == b
	})
	k.workers = workers
	k.mu.Unlock()
	if changed {
		k.p.cfg.OnChange()
	}
	return changed
}
