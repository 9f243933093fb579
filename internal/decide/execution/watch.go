package execution

import "time"

// lookEvery is how long an offer is valid.
const lookEvery = time.Second

// A Watch keeps the offer of a cluster to a run, and the time since when no task of the run has run or could have. When
// that is as long ago as the run allows, the run has stalled.
type Watch struct {
	Offer    Offer         // latest known
	Shortage string        // at the last look, in a sentence
	Patience time.Duration // how long it may last

	lookAt     time.Time // when to look again
	stuckSince time.Time // since when nothing runs or could; zero: something does
}

// Due reports whether a new offer is needed: every lookEvery, and before the run is declared stalled.
func (w *Watch) Due(now time.Time) bool { return !now.Before(w.lookAt) || w.Stalled(now) }

// Look records that a new offer is requested.
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

// Move stops the clock: a task of the run was started.
func (w *Watch) Move() { w.stuckSince = time.Time{} }

// Stalled reports whether nothing has run, or could have, for as long as the run allows.
func (w *Watch) Stalled(now time.Time) bool {
	return !w.stuckSince.IsZero() && now.Sub(w.stuckSince) >= w.Patience
}

// StallAt returns when the run will have stalled, if nothing changes; ok is false while something runs or could.
func (w *Watch) StallAt() (at time.Time, ok bool) {
	return w.stuckSince.Add(w.Patience), !w.stuckSince.IsZero()
}

// Next returns the time of the next action: to look, or to declare the run stalled.
func (w *Watch) Next() time.Time {
	if stall, ok := w.StallAt(); ok && stall.Before(w.lookAt) {
		return stall
	}
	return w.lookAt
}
