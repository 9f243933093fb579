package store

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// A Watch hears of every object that a Write changes, where Changed speaks of one subject, once. What was changed is a
// set: an object that changes a hundred times before the next Take is in it once, so that a Watch that nobody empties
// is never larger than the database has objects, and no Write ever waits for it.
type Watch struct {
	// Filled holds a token while there may be something to take.
	Filled chan struct{}

	db      *DB
	mu      sync.Mutex // guards changed; taken while DB.mu is held, never the other way round
	changed map[Subject]bool
}

// Watch begins to watch. The caller closes it.
func (d *DB) Watch() *Watch {
	w := &Watch{Filled: make(chan struct{}, 1), db: d, changed: map[Subject]bool{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches[w] = true
	return w
}

// add notes what a Write has changed, after its commit. Subjects that stand for many objects are left out.
func (w *Watch) add(touched map[Subject]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range touched {
		if s.ID != 0 {
			w.changed[s] = true
		}
	}
	select {
	case w.Filled <- struct{}{}:
	default: // the token is there
	}
}

// Take returns what has changed since the last Take, in the order of names and ids.
func (w *Watch) Take() []Subject {
	w.mu.Lock()
	changed := w.changed
	w.changed = map[Subject]bool{}
	w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(changed), func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.ID, b.ID))
	})
}

// Close ends the watch.
func (w *Watch) Close() {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	delete(w.db.watches, w)
}
