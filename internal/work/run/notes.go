package run

import (
	"sync"
	"time"

	"github.com/corral-pilot/corral"
)

// notes holds facts about runs that are not in the store: why a run does not progress, if this cannot be stored, for
// example on a full disk; and its expected end, which changes with each task. They are lost when corrald ends. The
// methods of notes may be called from any goroutine.
type notes struct {
	mu sync.Mutex // guards of
	of map[corral.RunID]note
}

// A note holds the facts about one run.
type note struct {
	keeps string    // why the run does not progress; empty: it does, or the reason is stored
	end   time.Time // expected end; zero: unknown

	revised bool // a plan that is revised during the run determines end

	closed bool // no more tasks can be added
}

// keeps notes why a run does not progress; "" removes the reason.
func (n *notes) keeps(id corral.RunID, what string) {
	n.change(id, func(of *note) { of.keeps = what })
}

// expect notes the expected end of a run that is not executed by a plan; zero means unknown.
func (n *notes) expect(id corral.RunID, end time.Time) {
	n.change(id, func(of *note) {
		if !of.revised {
			of.end = end
		}
	})
}

// Expect notes the expected end of a run by the latest revision of its plan, which replaces the run's own expectation,
// so that there is one; zero means unknown. If revised is false, revisions of the plan have ended.
func (m *Manager) Expect(id corral.RunID, end time.Time, revised bool) {
	m.notes.change(id, func(of *note) { of.end, of.revised = end, revised })
}

// close notes that no more tasks can be added to an open run.
func (n *notes) close(id corral.RunID) { n.change(id, func(of *note) { of.closed = true }) }

// forget removes the note of a run.
func (n *notes) forget(id corral.RunID) { n.change(id, func(of *note) { *of = note{} }) }

// change changes the note of a run. An empty note is removed.
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

// Noted adds the notes to the rows of runs that are not over, and returns the rows.
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
		// the end of a cancelled or late run is unknown
		if rows[i].State == corral.RunRunning && of.end.After(time.Now()) {
			rows[i].ExpectedEnd = of.end
		}
	}
	return rows
}
