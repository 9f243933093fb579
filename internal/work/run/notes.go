package run

import (
	"sync"
	"time"

	"github.com/corral-pilot/corral"
)

// notes say of runs what the store does not: what keeps one, where the store cannot be told, for it is full itself,
// say; and when one is expected to end, which changes with each task. They last as long as this corrald. Their methods
// may be called from any goroutine.
type notes struct {
	mu sync.Mutex // guards of
	of map[corral.RunID]note
}

// A note is what is noted of a run.
type note struct {
	keeps string    // what keeps the run; empty: nothing, or the store knows
	end   time.Time // when it is expected to end; zero: nobody knows

	closed bool // nothing is added to it any more
}

// keeps notes what keeps a run; "": nothing does any more.
func (n *notes) keeps(id corral.RunID, what string) {
	n.change(id, func(of *note) { of.keeps = what })
}

// expect notes when a run will end, as far as that is known.
func (n *notes) expect(id corral.RunID, end time.Time) {
	n.change(id, func(of *note) { of.end = end })
}

// close notes that nothing is added to an open run any more.
func (n *notes) close(id corral.RunID) { n.change(id, func(of *note) { of.closed = true }) }

// forget drops what is noted of a run.
func (n *notes) forget(id corral.RunID) { n.change(id, func(of *note) { *of = note{} }) }

// change makes a change to the note of a run. There is none that says nothing.
func (n *notes) change(id corral.RunID, by func(of *note)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.of[id]
	if by(&of); of == (note{}) {
		delete(n.of, id)
		return
	}
	if n.of == nil {
		n.of = make(map[corral.RunID]note)
	}
	n.of[id] = of
}

// Noted returns rows of runs with what only this corrald knows of those that are not over.
func (m *Manager) Noted(rows ...corral.Run) []corral.Run {
	m.notes.mu.Lock()
	defer m.notes.mu.Unlock()
	for i := range rows {
		of, ok := m.notes.of[rows[i].ID]
		rows[i].Open = rows[i].Options.Open && rows[i].State == corral.RunRunning && !of.closed
		if !ok || rows[i].State.Over() {
			continue
		}
		if of.keeps != "" {
			rows[i].Reason = of.keeps
		}
		// one that is cancelled ends when its tasks are dead; one that is late, nobody knows when
		if rows[i].State == corral.RunRunning && of.end.After(time.Now()) {
			rows[i].ExpectedEnd = of.end
		}
	}
	return rows
}
