package outage

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// settles is how long a worker must be out of reach before it is reported: a restart of corrald,
// or of a switch on the way, is over sooner.
const settles = 10 * time.Second

// Events of the histories of glideins and runs.
const (
	OutOfReach  = "out of reach"
	WithinReach = "within reach"
)

// format is what a history says of an outage, and what parse reads again.
const format = "%d of %d workers are out of reach since %s"

func sentence(o corral.Outage) string {
	return fmt.Sprintf(format, o.Workers, o.Of, o.Since.UTC().Format(time.RFC3339))
}

// parse reads what sentence has written.
func parse(s string) (o corral.Outage, ok bool) {
	var since string
	if n, err := fmt.Sscanf(s, format, &o.Workers, &o.Of, &since); err != nil || n != 3 {
		return corral.Outage{}, false
	}
	var err error
	o.Since, err = time.Parse(time.RFC3339, since)
	return o, err == nil && o.Workers > 0 && o.Workers <= o.Of
}

// A muster is what corrald knows of the workers of a glidein, or of a run, whose attempts run.
type muster struct {
	workers []corral.Worker // those that are out of reach are not Connected
	was     corral.Outage   // what was said of them last; zero: nothing
	blind   bool            // there may be workers that are not among workers
}

// connected counts the workers that are within reach.
func (m muster) connected() (n int) {
	for _, w := range m.workers {
		if w.Connected {
			n++
		}
	}
	return n
}

// outage is what is to be said now; zero: nothing. It begins once the first worker has been out of reach for
// settles, then with all that are, and ends when none is. Where corrald is blind, as after its restart, the
// workers that do not show are still out of reach.
func (m muster) outage(now time.Time) corral.Outage {
	connected, is := m.connected(), corral.Outage{Since: now}
	for _, w := range m.workers {
		if w.Connected || !w.EndsAt.IsZero() && !now.Before(w.EndsAt) { // then it has left by now
			continue
		}
		is.Workers++
		if w.SeenAt.Before(is.Since) {
			is.Since = w.SeenAt
		}
	}
	is.Of = connected + is.Workers
	if m.blind && is.Of < m.was.Of {
		is.Workers, is.Of = m.was.Of-connected, m.was.Of
	}
	switch {
	case is.Workers == 0:
		return corral.Outage{}
	case m.was.Workers > 0:
		is.Since = m.was.Since
	case now.Sub(is.Since) < settles:
		return corral.Outage{}
	}
	return is
}
