package slot

import "time"

// A Market is a site that prices any reservation, even if other jobs have to wait for it (Singh 2008, chapter 5). It
// offers slots that must be taken as a whole, at a fee that compensates for the waits of other jobs. Slots from the
// same or different calls are alternatives, because they use the same processors; after a reservation, query again.
// Numbers of processors and lengths must be positive.
type Market interface {
	// At prices the reservation that starts at an instant (equation 17). ok is false if it is not available.
	At(start, length time.Duration, processors int) (s Slot, ok bool)

	// From prices reservations that start at an instant or later (equation 19), in order of time: the earliest
	// reservation that is available, and one at each instant at which a job starts or ends. If start is the current
	// time, this is equation 18.
	From(start, length time.Duration, processors int) []Slot

	// Reserve takes a slot at the quoted fee. If the slot is no longer available, the error is of kind Conflict and
	// wraps a *StaleError; if only the fee has changed, it is of kind Conflict alone. In both cases nothing is
	// reserved.
	Reserve(s Slot) error

	// Trial returns a copy for trial reservations.
	Trial() Market
}
