package execution

import (
	"cmp"
	"time"
)

// A tally sums the time and the resources that attempts took, for the report of the run and for accounting.
type tally struct {
	firstStarted Msec
	lastEnded    Msec
	lost         time.Duration
	overMemory   int // attempts that were killed for it
	requeued     int
	retries      int
	larger       int // of these, with more memory

	ways  map[int32]Way // :: task → of the files of its last attempt that ended, if they travelled
	hours hours
}

// ran extends the time in which attempts ran.
func (t *tally) ran(from, to Msec) {
	t.firstStarted = min(cmp.Or(t.firstStarted, from), from)
	t.lastEnded = max(t.lastEnded, to)
}

// travel keeps the transfers of the last attempt at a task; nil: its files did not travel.
func (t *tally) travel(i int32, way *Way) {
	delete(t.ways, i)
	if way != nil {
		t.ways[i] = *way
	}
}

// retry counts a retry.
func (t *tally) retry(larger bool) {
	t.retries++
	if larger {
		t.larger++
	}
}
