package slot

import (
	"fmt"
	"time"
)

// An Offer is a site's advertisement at an instant. It is not a promise: other submissions and jobs that end early
// change it.
type Offer struct {
	Site       string
	At         time.Duration // the instant of the offer; no slot starts earlier
	Processors int           // total of the site: a wider task never runs there
	Slots      []Slot        // in order of time
}

// A Source provides the offers of a site.
type Source interface {
	// Offer returns the current offer. Errors have a kind of the root package.
	Offer() (Offer, error)
}

// Fixed is a Source with a constant offer, for example from a file.
type Fixed Offer

// Offer never fails.
func (f Fixed) Offer() (Offer, error) { return Offer(f), nil }

// A StaleError reports that a piece of an offer is no longer available because the site's plan has changed. None of the
// pieces requested with it was reserved. The caller should get a new offer and make a new plan.
type StaleError struct {
	Site  string
	Piece Piece
	Free  int // processors that are now free during the whole piece
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("slot %d of site %s is stale: of %d processors from %s to %s, %d are still free", e.Piece.Slot,
		e.Site, e.Piece.Processors, e.Piece.Start, e.Piece.End(), e.Free)
}
