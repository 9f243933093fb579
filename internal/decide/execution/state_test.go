package execution

import (
	"slices"
	"testing"
)

// Each event leads from a state to at most one other state. Units that are over can only be reopened; all others may
// fail or be skipped.
func TestMoves(t *testing.T) {
	t.Parallel()
	type start struct {
		from State
		on   event
	}
	seen := map[start]bool{}
	reached := map[State]bool{StateWaiting: true}
	for _, m := range moves {
		reached[m.to] = true
		for _, from := range m.from {
			if at := (start{from, m.on}); seen[at] {
				t.Errorf("two moves lead from %s on %s", from, m.on)
			} else {
				seen[at] = true
			}
			if from.over() && m.on != onReopen {
				t.Errorf("%s is over and leads to %s on %s", from, m.to, m.on)
			}
		}
	}
	for s := range states {
		if !reached[s] {
			t.Errorf("no move leads to %s", s)
		}
		if !s.over() && !(seen[start{s, onFail}] && seen[start{s, onSkip}]) {
			t.Errorf("%s cannot fail or be skipped", s)
		}
	}
	for e := range events {
		if !slices.ContainsFunc([]State{StateWaiting, StateReady, StateRunning, StateBehind, StateDone}, func(s State) bool {
			return seen[start{s, e}]
		}) {
			t.Errorf("no move has the event %s", e)
		}
	}
}

// An illegal move is a defect and panics, so that its consequences are not recorded.
func TestIllegalMove(t *testing.T) {
	t.Parallel()
	defer func() {
		if r := recover(); r != "execution: start is not possible for a unit that is done" {
			t.Errorf("recovered %v", r)
		}
	}()
	StateDone.next(onStart)
}
