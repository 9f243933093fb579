package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A submitted job is looked up for as long as the site may hide it, counted from the first poll after the last try, not
// from the first try or from a future time that was recorded before a clock was set back.
func TestMissing(t *testing.T) {
	t.Parallel()
	m := Missing{}
	for _, step := range []struct {
		name    string
		at      time.Duration
		do      func(now time.Time)
		mayCome bool
	}{
		{"nobody has looked", time.Hour, func(time.Time) {}, true},
		{"the first look", time.Hour, func(now time.Time) { m.Looked("t", Sighting{}, now) }, true},
		{"another, too early", time.Hour + Visibility - 1, func(now time.Time) { m.Looked("t", Sighting{}, now) }, true},
		{"another, in time", time.Hour + Visibility, func(now time.Time) { m.Looked("t", Sighting{}, now) }, false},
		{"submitted again", time.Hour + Visibility, func(time.Time) { m.Forget("t") }, true},
		{"a look after that", 2 * time.Hour, func(now time.Time) { m.Looked("t", Sighting{}, now) }, true},
		{"the clock was set back", 0, func(now time.Time) { m.Looked("t", Sighting{}, now) }, true},
		{"and has gone on", Visibility, func(now time.Time) { m.Looked("t", Sighting{}, now) }, false},
	} {
		now := t0.Add(step.at)
		if step.do(now); m.MayCome("t", now) != step.mayCome {
			t.Errorf("%s: may come %v", step.name, !step.mayCome)
		}
	}
}

// A pilot that found the attempt's lease taken ends and is shown, while the pilot with the lease works and is hidden:
// the end of the first pilot does not count as the attempt's end until the other pilot has had time to appear.
func TestDuplicateIsNotTheEndOfTheAttempt(t *testing.T) {
	t.Parallel()
	j := corral.Job{Kind: corral.PilotJob, State: corral.JobSubmitted, Tag: "t"}
	left := Sighting{Known: true, ID: "2", Phase: Ended, StartedAt: t0, EndedAt: t0, Report: &Report{Outcome: corral.OutcomeDuplicate}}
	works := Sighting{Known: true, ID: "1", Phase: Running, StartedAt: t0}
	m := Missing{}
	look := func(after time.Duration, s Sighting) (moves []corral.JobMove) {
		now := t0.Add(after)
		for _, e := range Events(j, m.Looked("t", s, now), now) {
			moves = append(moves, e.Move)
		}
		return moves
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		shows Sighting
		moves []corral.JobMove
	}{
		{"only the duplicate", 0, left, nil},
		{"the one that works", time.Second, works, []corral.JobMove{corral.JobStart}},
		{"the duplicate alone again", time.Minute, left, nil},
		{"nothing for a moment", time.Minute + 1, Sighting{}, nil},
		{"and for as long as one may be hidden", time.Minute + Visibility, left, []corral.JobMove{corral.JobStart, corral.JobEnd}},
	} {
		if moves := look(step.after, step.shows); !slices.Equal(moves, step.moves) {
			t.Errorf("%s: %v, want %v", step.name, moves, step.moves)
		}
	}
}
