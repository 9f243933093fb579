package store

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// A Watch is notified of every object that a Write changes, whereas Changed reports one subject, once. The changes
// form a set: an object that changes a hundred times before the next Take is in it once. So a Watch that is never
// emptied holds at most as many entries as the database has objects, and no Write ever waits for it.
type Watch struct {
	// Filled contains a token while there may be changes to take.
	Filled chan struct{}

	db      *DB
	mu      sync.Mutex // guards changed; locked while DB.mu is held, never in the opposite order
	changed map[Subject]bool
}

// Watch starts watching. The caller must close the Watch.
func (d *DB) Watch() *Watch {
	w := &Watch{Filled: make(chan struct{}, 1), db: d, changed: map[Subject]bool{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches[w] = true
	return w
}

// add records the changes of a Write after its commit. Subjects that stand for many objects are left out.
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
	default: // the token is already there
	}
}

// Take returns the changes since the last Take, sorted by name and id.
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
