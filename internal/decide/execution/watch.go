package execution

import "time"

// lookEvery is how long an offer is believed.
const lookEvery = time.Second

// A Watch keeps what a cluster offers to a run, and for how long nothing of the run has run or could have. When
// that is as long as the run allows, the run has stalled.
type Watch struct {
	Offer    Offer         // latest known
	Shortage string        // what lacks what, as of the last look
	Patience time.Duration // how long it may last

	lookAt     time.Time // when to look again
	stuckSince time.Time // since when nothing runs or could; zero: something does
}

// Due reports whether the cluster must be asked what it offers: now and then, and before the run is called stalled.
func (w *Watch) Due(now time.Time) bool { return !now.Before(w.lookAt) || w.Stalled(now) }

// Look notes that the cluster is asked.
func (w *Watch) Look(now time.Time) { w.lookAt = now.Add(lookEvery) }

// Judge starts or stops the clock of a stall.
func (w *Watch) Judge(now time.Time, short Shortage) {
	w.Shortage = short.What
	switch {
	case short.Able || short.What == "":
		w.Move()
	case w.stuckSince.IsZero():
		w.stuckSince = now
	}
}

// Move stops the clock: something of the run was started.
func (w *Watch) Move() { w.stuckSince = time.Time{} }

// Stalled reports whether nothing has run, or could have, for as long as the run allows.
func (w *Watch) Stalled(now time.Time) bool {
	return !w.stuckSince.IsZero() && now.Sub(w.stuckSince) >= w.Patience
}

// StallAt returns when the run will have stalled, if nothing changes; ok is false while something runs or could.
func (w *Watch) StallAt() (at time.Time, ok bool) {
	return w.stuckSince.Add(w.Patience), !w.stuckSince.IsZero()
}

// Next returns when there is something to do: to look, or to call the run stalled.
func (w *Watch) Next() time.Time {
	if stall, ok := w.StallAt(); ok && stall.Before(w.lookAt) {
		return stall
	}
	return w.lookAt
}
