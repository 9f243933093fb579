package slot

import (
	"fmt"
	"time"
)

// An Offer is what a site advertises at an instant. It is advice, and no promise: whatever others submit, and whatever
// ends early, changes it.
type Offer struct {
	Site       string
	At         time.Duration // when it was made; no slot starts earlier
	Processors int           // of the site: a wider task never runs there
	Slots      []Slot        // in the order of time
}

// A Source says which slots a site offers.
type Source interface {
	// Offer returns what is offered now. Errors have a kind of the root package.
	Offer() (Offer, error)
}

// Fixed is a Source that always offers the same, such as what a file says.
type Fixed Offer

// Offer never fails.
func (f Fixed) Offer() (Offer, error) { return Offer(f), nil }

// A StaleError says that a piece of an offer can no longer be had: the site's plan is another by now. Nothing was
// reserved of what was asked for with it. The way on is another offer, and another plan.
type StaleError struct {
	Site  string
	Piece Piece
	Free  int // processors that are free throughout its time by now
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("slot %d of site %s is stale: of %d processors from %s to %s, %d are still free", e.Piece.Slot,
		e.Site, e.Piece.Processors, e.Piece.Start, e.Piece.End(), e.Free)
}
