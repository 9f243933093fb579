package slot

import "time"

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
