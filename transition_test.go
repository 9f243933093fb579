package corral_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// checkTable checks the requirements on every table of moves: known states, meanings, at most one move for each state
// and event, and a path from the first state to every other state.
func checkTable[S, E ~string](t *testing.T, states []S, first S, moves corral.Table[S, E]) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range moves {
		if m.Means == "" {
			t.Errorf("%s has no meaning", m.Event)
		}
		for _, s := range append(slices.Clone(m.From), m.To) {
			if !slices.Contains(states, s) {
				t.Errorf("%s has the unknown state %s", m.Event, s)
			}
		}
		for _, from := range m.From {
			if key := string(from) + " " + string(m.Event); seen[key] {
				t.Errorf("two moves for %s", key)
			} else {
				seen[key] = true
			}
		}
	}
	for _, s := range states {
		if !slices.Contains(reachable(first, moves), s) {
			t.Errorf("%s cannot be reached from %s", s, first)
		}
	}
}

func reachable[S, E ~string](first S, moves corral.Table[S, E]) []S {
	found := []S{first}
	for i := 0; i < len(found); i++ {
		for _, m := range moves {
			if slices.Contains(m.From, found[i]) && !slices.Contains(found, m.To) {
				found = append(found, m.To)
			}
		}
	}
	return found
}

func TestTables(t *testing.T) {
	t.Parallel()
	t.Run("site", func(t *testing.T) { checkTable(t, corral.SiteStates, corral.SiteNew, corral.SiteMoves) })
	t.Run("job", func(t *testing.T) { checkTable(t, corral.JobStates, corral.JobNew, corral.JobMoves) })
	t.Run("run", func(t *testing.T) { checkTable(t, corral.RunStates, corral.RunRunning, corral.RunMoves) })
}

// allEvents returns each event of a table once.
func allEvents[S, E ~string](moves corral.Table[S, E]) []E {
	var all []E
	for _, m := range moves {
		if !slices.Contains(all, m.Event) {
			all = append(all, m.Event)
		}
	}
	return all
}

func TestDeletedSiteHasNoTrouble(t *testing.T) {
	t.Parallel()
	s := corral.Site{State: corral.SiteReady, Trouble: corral.SiteTrouble{Why: "no route", Since: noon}, RelayTrouble: "no port"}
	s, _, err := s.Apply(corral.SiteForget, "gone", noon)
	if err != nil || s.Trouble != (corral.SiteTrouble{}) || s.RelayTrouble != "" {
		t.Errorf("forgotten: %+v, %v", s, err)
	}
}

func TestSiteApply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := corral.Site{Name: "a", State: corral.SiteNew}
		for range 12 {
			move := rapid.SampledFrom(allEvents(corral.SiteMoves)).Draw(t, "move")
			next, _, err := s.Apply(move, "because", noon)
			switch {
			case err != nil && (corral.KindOf(err) != corral.Conflict || !cmp.Equal(next, s)):
				t.Fatalf("refused %s in %s: %v, and %+v became %+v", move, s.State, err, s, next)
			case err == nil && s.State.Terminal():
				t.Fatalf("%s leads out of %s", move, s.State)
			case err == nil && (next.Reason != "because" || !next.UpdatedAt.Equal(noon)):
				t.Fatalf("%s left reason %q and time %s", move, next.Reason, next.UpdatedAt)
			}
			s = next
		}
	})
}

// TestForcedRemovalIsAlwaysPossible checks that a user can remove any site that is not already deleted.
func TestForcedRemovalIsAlwaysPossible(t *testing.T) {
	t.Parallel()
	for _, state := range corral.SiteStates {
		_, _, err := corral.Site{State: state}.Apply(corral.SiteForget, "", noon)
		if (err == nil) != (state != corral.SiteDeleted) {
			t.Errorf("forget in %s: %v", state, err)
		}
	}
}

func TestRunApply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := corral.Run{Workflow: "w", State: corral.RunRunning}
		at := noon
		for range 12 {
			at = at.Add(time.Second)
			move := rapid.SampledFrom(allEvents(corral.RunMoves)).Draw(t, "move")
			next, _, err := r.Apply(move, "", at)
			if err != nil && corral.KindOf(err) != corral.Conflict {
				t.Fatalf("refused %s in %s: %v", move, r.State, err)
			}
			if next.State.Over() == next.EndedAt.IsZero() {
				t.Fatalf("%s in %s: state %s and end %s do not agree", move, r.State, next.State, next.EndedAt)
			}
			if move == corral.RunRemove && err == nil && !next.EndedAt.Equal(r.EndedAt) {
				t.Fatalf("removing moved the end from %s to %s", r.EndedAt, next.EndedAt)
			}
			r = next
		}
	})
}

func TestRunResumeForgetsTheReport(t *testing.T) {
	t.Parallel()
	r := corral.Run{State: corral.RunFailed, EndedAt: noon, Report: &corral.RunReport{}}
	r, _, err := r.Apply(corral.RunResume, "", noon)
	if err != nil || r.Report != nil || !r.EndedAt.IsZero() {
		t.Errorf("resumed: %v, report %v, end %s", err, r.Report, r.EndedAt)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	inner := errors.New("disk full")
	err := corral.ErrorAt(corral.Invalid, "site.yaml:3", "write: %w", inner)
	if got, want := err.Error(), "site.yaml:3: write: disk full"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if !errors.Is(err, inner) {
		t.Error("the cause is lost")
	}
	for _, c := range []struct {
		err  error
		want corral.Kind
	}{
		{nil, ""},
		{inner, corral.Internal},
		{err, corral.Invalid},
		{corral.Errorf(corral.Unavailable, "asking: %w", err), corral.Unavailable},
	} {
		if got := corral.KindOf(c.err); got != c.want {
			t.Errorf("KindOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
