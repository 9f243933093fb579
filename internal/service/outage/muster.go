package outage

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// settles is how long a worker must be unreachable before it is reported: a restart of corrald or of a network switch
// is over sooner.
const settles = 10 * time.Second

// Events of the histories of glideins and runs.
const (
	OutOfReach  = "out of reach"
	WithinReach = "within reach"
)

// format is the text of an outage in a history; parse reads it.
const format = "%d of %d workers are out of reach since %s"

func sentence(o corral.Outage) string {
	return fmt.Sprintf(format, o.Workers, o.Of, o.Since.UTC().Format(time.RFC3339))
}

// parse reads the text written by sentence.
func parse(s string) (o corral.Outage, ok bool) {
	var since string
	if n, err := fmt.Sscanf(s, format, &o.Workers, &o.Of, &since); err != nil || n != 3 {
		return corral.Outage{}, false
	}
	var err error
	o.Since, err = time.Parse(time.RFC3339, since)
	return o, err == nil && o.Workers > 0 && o.Workers <= o.Of
}

// A muster is the known state of the workers of a glidein or a run with running attempts.
type muster struct {
	workers []corral.Worker // unreachable workers are not Connected
	was     corral.Outage   // the outage last recorded; zero: none
	blind   bool            // some workers may be missing from workers
}

// connected counts the reachable workers.
func (m muster) connected() (n int) {
	for _, w := range m.workers {
		if w.Connected {
			n++
		}
	}
	return n
}

// outage returns the outage to report now, or the zero value if there is none. It begins once the first worker has been
// unreachable for settles, then includes all unreachable workers, and ends when there are none. If corrald is blind, as
// after its restart, the missing workers still count as unreachable.
func (m muster) outage(now time.Time) corral.Outage {
	connected, is := m.connected(), corral.Outage{Since: now}
	for _, w := range m.workers {
		if w.Connected || !w.EndsAt.IsZero() && !now.Before(w.EndsAt) { // the worker has left by now
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
