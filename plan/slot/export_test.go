package slot

import "time"

// Machine returns the list of a site on which nothing is planned: it is the state of the thesis's non-delaying
// scheduler (Singh 2008, section 3.1), which keeps no other state.
func Machine(processors int, from time.Duration) *List {
	return NewList([]Slot{{Start: from, Length: time.Hour, Processors: processors, Divisible: true, Extensible: true}})
}

// Taken returns the pieces that were taken since Record, in order.
func (l *List) Taken() []Piece { return l.taken }

// Place finds the earliest start with Find and takes n processors there.
func (l *List) Place(earliest, length time.Duration, n int) (start time.Duration, ok bool) {
	if start, ok = l.Find(earliest, length, n); ok {
		l.Take()
	}
	return start, ok
}

// Free returns the free parts as slots with their original prices, in order of time. Parts that end because something
// is taken after them are neither divisible nor extensible, so that a site is not fragmented. Parts without an end are
// divisible and extensible; they last until the horizon, and at least one millisecond.
func (l *List) Free(horizon time.Duration) []Slot {
	all := make([]Slot, len(l.free))
	for i, r := range l.free {
		s, open := l.slots[r.slot], r.end == Forever
		all[i] = Slot{r.start, r.end - r.start, r.processors, s.Price, s.Fee, open, open}
		if open {
			all[i].Length = max(horizon, r.start+time.Millisecond) - r.start
		}
	}
	return all
}
