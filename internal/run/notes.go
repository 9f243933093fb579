package run

import (
	"sync"

	"github.com/corral-pilot/corral"
)

// notes say what keeps runs that the store cannot be told: it is full itself, say. They last as long as this corrald.
// Their methods may be called from any goroutine.
type notes struct {
	mu sync.Mutex // guards of
	of map[corral.RunID]string
}

// set notes what keeps a run; "": nothing does any more.
func (n *notes) set(id corral.RunID, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if what == "" {
		delete(n.of, id)
		return
	}
	if n.of == nil {
		n.of = make(map[corral.RunID]string)
	}
	n.of[id] = what
}

// Noted returns rows of runs with what keeps them, where only this corrald knows that.
func (m *Manager) Noted(rows ...corral.Run) []corral.Run {
	m.notes.mu.Lock()
	defer m.notes.mu.Unlock()
	for i := range rows {
		if what := m.notes.of[rows[i].ID]; what != "" && !rows[i].State.Over() {
			rows[i].Reason = what
		}
	}
	return rows
}
