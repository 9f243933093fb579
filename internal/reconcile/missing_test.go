package reconcile

import (
	"testing"
	"time"
)

// What was submitted is looked up for as long as the site may hide it, counted from the first look after the last try:
// not from the first try, and not from a tomorrow that a clock has come back from.
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
		{"the first look", time.Hour, func(now time.Time) { m.Unseen("t", now) }, true},
		{"another, too early", time.Hour + Visibility - 1, func(now time.Time) { m.Unseen("t", now) }, true},
		{"another, in time", time.Hour + Visibility, func(now time.Time) { m.Unseen("t", now) }, false},
		{"submitted again", time.Hour + Visibility, func(time.Time) { m.Forget("t") }, true},
		{"a look after that", 2 * time.Hour, func(now time.Time) { m.Unseen("t", now) }, true},
		{"the clock was set back", 0, func(now time.Time) { m.Unseen("t", now) }, true},
		{"and has gone on", Visibility, func(now time.Time) { m.Unseen("t", now) }, false},
	} {
		now := t0.Add(step.at)
		if step.do(now); m.MayCome("t", now) != step.mayCome {
			t.Errorf("%s: may come %v", step.name, !step.mayCome)
		}
	}
}
