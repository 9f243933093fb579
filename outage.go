package corral

import (
	"fmt"
	"time"
)

// OutageSettles is for how long a worker has to be out of reach before anything is said of it: a restart of corrald,
// or of a switch on the way, is over sooner.
const OutageSettles = 10 * time.Second

// Events of the histories of glideins and runs.
const (
	EventOutOfReach  = "out of reach"
	EventWithinReach = "within reach"
)

// An Outage says how many workers of a glidein, or of a run's cluster, are out of reach, and since when.
type Outage struct {
	Workers int       `json:"workers"` // that are out of reach
	Of      int       `json:"of"`      // that there are
	Since   time.Time `json:"since"`   // of the first of them
}

// outageFormat is what a history says of an outage, and what ParseOutage reads.
const outageFormat = "%d of %d workers are out of reach since %s"

func (o Outage) String() string {
	return fmt.Sprintf(outageFormat, o.Workers, o.Of, o.Since.UTC().Format(time.RFC3339))
}

// ParseOutage reads what String has written.
func ParseOutage(s string) (o Outage, ok bool) {
	var since string
	if n, err := fmt.Sscanf(s, outageFormat, &o.Workers, &o.Of, &since); err != nil || n != 3 {
		return Outage{}, false
	}
	var err error
	o.Since, err = time.Parse(time.RFC3339, since)
	return o, err == nil && o.Workers > 0 && o.Workers <= o.Of
}

// A Muster is what corrald knows of the workers of a glidein, or of a run, whose attempts run.
type Muster struct {
	Workers []Worker // those that are out of reach are not Connected
	Was     Outage   // what was said of them last; zero: nothing
	Blind   bool     // there may be workers that are not among Workers
}

// Connected counts the workers that are within reach.
func (m Muster) Connected() (n int) {
	for _, w := range m.Workers {
		if w.Connected {
			n++
		}
	}
	return n
}

// Outage is what is to be said now; zero: nothing. It begins once the first worker has been out of reach for
// OutageSettles, then with all that are, and ends when none is. Where corrald is blind, as after its restart, the
// workers that do not show are still out of reach.
func (m Muster) Outage(now time.Time) Outage {
	connected, is := m.Connected(), Outage{Since: now}
	for _, w := range m.Workers {
		if w.Connected || !w.EndsAt.IsZero() && !now.Before(w.EndsAt) { // then it has left by now
			continue
		}
		is.Workers++
		if w.SeenAt.Before(is.Since) {
			is.Since = w.SeenAt
		}
	}
	is.Of = connected + is.Workers
	if m.Blind && is.Of < m.Was.Of {
		is.Workers, is.Of = m.Was.Of-connected, m.Was.Of
	}
	switch {
	case is.Workers == 0:
		return Outage{}
	case m.Was.Workers > 0:
		is.Since = m.Was.Since
	case now.Sub(is.Since) < OutageSettles:
		return Outage{}
	}
	return is
}
