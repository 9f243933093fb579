package execution

import (
	"cmp"
	"time"
)

// A tally sums the time and resources that attempts used, for the report of the run and for accounting.
type tally struct {
	firstStarted Msec
	lastEnded    Msec
	lost         time.Duration
	overMemory   int // attempts killed for their memory
	requeued     int
	retries      int
	larger       int // retries with more memory

	ways  map[int32]Way // :: task → transfers of its last attempt that ended, if any
	hours hours
}

// ran extends the period in which attempts ran.
func (t *tally) ran(from, to Msec) {
	t.firstStarted = min(cmp.Or(t.firstStarted, from), from)
	t.lastEnded = max(t.lastEnded, to)
}

// travel records the transfers of the last attempt at a task; nil means that its files were not transferred.
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
