package slot

import "time"

// A Market is a site that prices whatever reservation is asked for, whoever has to wait for it (Singh 2008, chapter 5).
// What it offers are slots to be taken whole, at a fee for the wait of others; those of one answer, and of several, are
// alternatives, for they are of the same processors: after a reservation it has to be asked again. Numbers of
// processors and lengths are positive.
type Market interface {
	// At prices the reservation that starts at an instant (equation 17). ok is false if it cannot be had.
	At(start, length time.Duration, processors int) (s Slot, ok bool)

	// From prices reservations that start at an instant or later (equation 19): the earliest that can be had, and one
	// at each instant at which something starts or ends. From now on it is equation 18. They are in the order of time.
	From(start, length time.Duration, processors int) []Slot

	// Reserve takes a slot at the fee that was told. The error is of kind Conflict, with a *StaleError in it, if it can
	// not be had any more, and without one if the fee is another by now. Then nothing was reserved.
	Reserve(s Slot) error

	// Trial returns a copy on which reservations can be tried.
	Trial() Market
}
