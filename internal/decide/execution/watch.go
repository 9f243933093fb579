package execution

import "time"

// lookEvery is how long an offer is valid.
const lookEvery = time.Second

// A Watch keeps a cluster's offer to a run, and the time since which no task of the run has been able to run. The run
// has stalled when this has lasted as long as the run allows.
type Watch struct {
	Offer    Offer         // latest known
	Shortage string        // as of the last look, in a sentence
	Patience time.Duration // maximum duration of a shortage

	lookAt     time.Time // time of the next look
	stuckSince time.Time // time since which nothing can run; zero: something runs or could
}

// Due reports whether a new offer is needed: every lookEvery, and before the run is declared stalled.
func (w *Watch) Due(now time.Time) bool { return !now.Before(w.lookAt) || w.Stalled(now) }

// Look records that a new offer is requested.
func (w *Watch) Look(now time.Time) { w.lookAt = now.Add(lookEvery) }

// Judge starts or stops the stall clock.
func (w *Watch) Judge(now time.Time, short Shortage) {
	w.Shortage = short.What
	switch {
	case short.Able || short.What == "":
		w.Move()
	case w.stuckSince.IsZero():
		w.stuckSince = now
	}
}

// Move stops the stall clock, because a task of the run was started.
func (w *Watch) Move() { w.stuckSince = time.Time{} }

// Stalled reports whether nothing has been able to run for as long as the run allows.
func (w *Watch) Stalled(now time.Time) bool {
	return !w.stuckSince.IsZero() && now.Sub(w.stuckSince) >= w.Patience
}

// StallAt returns the time at which the run will stall if nothing changes; ok is false while something runs or could.
func (w *Watch) StallAt() (at time.Time, ok bool) {
	return w.stuckSince.Add(w.Patience), !w.stuckSince.IsZero()
}

// Next returns the time of the next action: to request a new offer, or to declare the run stalled.
func (w *Watch) Next() time.Time {
	if stall, ok := w.StallAt(); ok && stall.Before(w.lookAt) {
		return stall
	}
	return w.lookAt
}
