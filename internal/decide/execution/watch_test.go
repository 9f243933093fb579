package execution_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A run has stalled when nothing has been able to run for as long as it allows; a task that starts, or could, begins the
// time again.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := execution.Watch{Patience: time.Minute}
	lacks := execution.Shortage{What: "task a needs more"}
	for _, step := range []struct {
		name    string
		at      time.Duration
		do      func(now time.Time)
		due     bool
		stalled bool
		next    time.Duration
	}{
		{"the first look", 0, w.Look, false, false, time.Second},
		{"it lacks something", 0, func(now time.Time) { w.Judge(now, lacks) }, false, false, time.Second},
		{"time to look again", time.Second, func(time.Time) {}, true, false, time.Second},
		{"it still does", 59 * time.Second, func(now time.Time) { w.Look(now); w.Judge(now, lacks) }, false, false, time.Minute},
		{"for too long", time.Minute, func(time.Time) {}, true, true, time.Minute},
		{"something else runs", time.Minute, func(now time.Time) {
			w.Judge(now, execution.Shortage{Able: true, What: lacks.What})
		}, true, false, time.Minute},
		{"nothing can run", 2 * time.Minute, func(now time.Time) { w.Look(now); w.Judge(now, lacks) }, false, false, 2*time.Minute + time.Second},
		{"nothing is lacking", 3 * time.Minute, func(now time.Time) {
			w.Look(now)
			w.Judge(now, execution.Shortage{})
		}, false, false, 3*time.Minute + time.Second},
		{"and then it is again", 4 * time.Minute, func(now time.Time) { w.Look(now); w.Judge(now, lacks) }, false, false, 4*time.Minute + time.Second},
		{"a task starts", 5 * time.Minute, func(time.Time) { w.Move() }, true, false, 4*time.Minute + time.Second},
	} {
		now := start.Add(step.at)
		step.do(now)
		if due, stalled, next := w.Due(now), w.Stalled(now), w.Next(); due != step.due || stalled != step.stalled || !next.Equal(start.Add(step.next)) {
			t.Errorf("%s: due %t, stalled %t, next after %s, want %t, %t, %s", step.name, due, stalled, next.Sub(start), step.due,
				step.stalled, step.next)
		}
	}
}
