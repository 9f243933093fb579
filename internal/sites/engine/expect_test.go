package engine

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A site is polled often only for changes of which corrald would not be notified.
func TestExpectedChanges(t *testing.T) {
	t.Parallel()
	attempt := func(state corral.JobState, change func(*corral.Job)) reconcile.World {
		a := corral.Job{ID: 1, Kind: corral.PilotJob, State: state, StartedAt: noon}
		if change != nil {
			change(&a)
		}
		return reconcile.World{Glideins: []corral.Glidein{{
			Shape:    corral.Shape{Walltime: corral.Seconds(time.Hour)},
			Attempts: []corral.Job{a}}}}
	}
	asked := attempt(corral.JobRunning, nil)
	asked.Glideins[0].Asked = corral.AskDrain
	two := attempt(corral.JobRunning, nil)
	two.Glideins = append(two.Glideins, two.Glideins[0])
	two.Glideins[1].Walltime = corral.Seconds(time.Minute)
	for _, tt := range []struct {
		name string
		w    reconcile.World
		now  time.Time
		want expectation
	}{
		{"nothing there", reconcile.World{}, noon, expectation{}},
		{"a setup job", reconcile.World{Jobs: []corral.Job{{State: corral.JobRunning}}}, noon, expectation{soon: true}},
		{"one that is over", reconcile.World{Jobs: []corral.Job{{State: corral.JobEnded}}}, noon, expectation{}},
		{"no answer yet", attempt(corral.JobNew, nil), noon, expectation{soon: true}},
		{"not seen yet", attempt(corral.JobSubmitted, nil), noon, expectation{soon: true}},
		{"in the queue", attempt(corral.JobQueued, nil), noon, expectation{}},
		{"in the queue, and its pilot dialled in", attempt(corral.JobQueued, func(a *corral.Job) { a.LeaseHolder = "p" }), noon, expectation{soon: true}},
		{"at work", attempt(corral.JobRunning, nil), noon, expectation{at: noon.Add(time.Hour)}},
		{"two at work", two, noon, expectation{at: noon.Add(time.Minute)}},
		{"one of them due", two, noon.Add(time.Minute), expectation{soon: true, at: noon.Add(time.Hour)}},
		{"asked to end", attempt(corral.JobRunning, func(a *corral.Job) { a.Asked = corral.AskCancel }), noon, expectation{soon: true}},
		{"its glidein is asked to drain", asked, noon, expectation{soon: true}},
	} {
		if got := expect(tt.now, tt.w); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// The longer nothing happens, the less often a site is polled, down to once a minute; scheduled changes are noticed
// in time.
func TestPace(t *testing.T) {
	t.Parallel()
	soon := expectation{soon: true}
	for _, tt := range []struct {
		name  string
		p     pace
		quiet time.Duration // since the last change, at the last poll
		want  time.Duration // until the next poll
	}{
		{"just after a change", pace{}, time.Second, pollBusy},
		{"a change, at a site that is asked seldom", pace{steady: 20 * time.Second}, time.Second, 2 * time.Second},
		{"something is expected", pace{expected: soon}, time.Hour, pollSteady},
		{"something is expected, at a site that is asked seldom", pace{steady: 20 * time.Second, expected: soon}, time.Hour, 20 * time.Second},
		{"nothing for ten seconds", pace{}, 10 * time.Second, pollSteady},
		{"nothing for two minutes", pace{}, 2 * time.Minute, 15 * time.Second},
		{"nothing for hours", pace{}, 3 * time.Hour, pollNothing},
		{"nothing for hours, at a site that is asked seldom", pace{steady: 5 * time.Minute}, 3 * time.Hour, 5 * time.Minute},
		{"a walltime ends", pace{expected: expectation{at: noon.Add(3*time.Hour + 7*time.Second)}}, 3 * time.Hour, 7 * time.Second},
		{"a walltime ends later", pace{expected: expectation{at: noon.Add(4 * time.Hour)}}, 3 * time.Hour, pollNothing},
		{"a walltime has ended", pace{expected: expectation{at: noon}}, 3 * time.Hour, pollNothing},
		{"polls take long", pace{took: time.Minute, expected: soon}, time.Hour, pollShare * time.Minute},
	} {
		tt.p.busy(noon)
		took := tt.p.took
		tt.p.polled(noon.Add(tt.quiet), took)
		if got := tt.p.next().Sub(noon.Add(tt.quiet)); got != tt.want {
			t.Errorf("%s: the next poll comes after %s, want %s", tt.name, got, tt.want)
		}
	}
	var fresh pace // a corrald that was just started
	fresh.polled(noon, 0)
	if got := fresh.next().Sub(noon); got != pollBusy {
		t.Errorf("after the first poll the next comes after %s", got)
	}
	fresh.lookAgain()
	if fresh.next().After(noon) {
		t.Error("it does not look again at once")
	}
}
