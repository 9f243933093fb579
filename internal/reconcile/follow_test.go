package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// A pilot has an hour. Its follower was planned for t0 + 2 h, and is to run ten minutes before the workers of the first
// leave.
func TestFollowerIsWantedWhenItsPlaceIsFree(t *testing.T) {
	t.Parallel()
	leave := workersLeave(corral.Glidein{Walltime: corral.Seconds(time.Hour)}, alive(1, corral.JobRunning)).Sub(t0)
	queued := alive(1, corral.JobQueued)
	queued.StartedAt, queued.SubmittedAt = time.Time{}, t0
	late := alive(1, corral.JobRunning)
	late.StartedAt = t0.Add(8*time.Minute - leave)
	for _, tt := range []struct {
		name    string
		earlier []corral.Job // of the one that it follows
		asked   corral.Ask
		planned time.Duration
		waits   []corral.Wait
		at      time.Duration // to which it is retimed; 0: it is not
		submit  bool          // at its planned time, an hour later
	}{
		{"it has not been asked for", nil, "", 2 * time.Hour, nil, 0, false},
		{"it waits", []corral.Job{queued}, "", 2 * time.Hour, nil, 0, false},
		{"it runs", []corral.Job{alive(1, corral.JobRunning)}, "", 2 * time.Hour, nil, leave - 10*time.Minute, false},
		{"others have waited", []corral.Job{alive(1, corral.JobRunning)}, "", 2 * time.Hour, []corral.Wait{waited(8 * time.Minute)}, leave - 18*time.Minute, false},
		{"it runs as planned", []corral.Job{alive(1, corral.JobRunning)}, "", leave - 10*time.Minute + 30*time.Second, nil, 0, true},
		{"it came too early", []corral.Job{late}, "", 2 * time.Hour, nil, -2 * time.Minute, false},
		{"both are due", []corral.Job{late}, "", 0, nil, 0, true},
		{"it has ended", []corral.Job{over(1, corral.OutcomeIdle)}, "", 2 * time.Hour, nil, 0, true},
		{"it was asked to leave", []corral.Job{alive(1, corral.JobRunning)}, corral.AskDrain, 2 * time.Hour, nil, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := glideinWith(resubmit.Policy{}, tt.earlier...)
			p.Walltime, p.Asked = corral.Seconds(time.Hour), tt.asked
			g := glideinWith(resubmit.Policy{})
			g.ID, g.Walltime, g.Follows, g.Overlap = 8, p.Walltime, p.ID, corral.Seconds(10*time.Minute)
			if g.NotBefore = t0.Add(tt.planned); tt.planned == 0 {
				g.NotBefore = t0.Add(-time.Hour)
			}
			w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{p, g}, Waits: tt.waits}
			var retimed []Retime
			for _, a := range Decide(t0, w) {
				if r, ok := a.(Retime); ok {
					retimed = append(retimed, r)
				}
			}
			var want []Retime
			if tt.at != 0 {
				want = []Retime{{Glidein: 8, At: t0.Add(tt.at)}}
			}
			if diff := cmp.Diff(want, retimed, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Reason" }, cmp.Ignore())); diff != "" {
				t.Fatalf("at once (-want +got):\n%s", diff)
			}
			if tt.at != 0 {
				if why := retimed[0].Reason; !strings.Contains(why, "takes over from glidein 7, and is to run 10m0s") {
					t.Errorf("it says %q", why)
				}
				return
			}
			submits := false
			for _, a := range Decide(latestOf(t0, g.NotBefore), w) {
				if s, ok := a.(Submit); ok && s.Glidein == g.ID {
					submits = true
				}
			}
			if submits != tt.submit {
				t.Errorf("submitted at its planned time: %v", submits)
			}
		})
	}
}

// A follower whose place is taken says so, and is not shown as if only the time kept it.
func TestFollowerSaysWhomItWaitsFor(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	r.must(CreateGlidein{Glidein: forever()})
	g := forever()
	g.Follows, g.Overlap, g.NotBefore = 1, corral.Seconds(time.Minute), t0.Add(time.Minute)
	r.must(CreateGlidein{Glidein: g})
	r.now = t0.Add(2 * time.Minute)
	for range 3 {
		for _, a := range Decide(r.now, r.World) {
			if s, ok := a.(Submit); !ok || s.Glidein != 1 {
				r.perform(a)
			}
		}
	}
	const want = "it takes over from glidein 1, which does not run yet"
	if got := r.Glideins[1]; got.State != corral.GlideinWaiting || got.Reason != want {
		t.Errorf("it is %s: %s", got.State, got.Reason)
	}
	if o := Outlook(r.now, r.World, r.Glideins[1]); !strings.Contains(o.Why, want) {
		t.Errorf("the outlook says %q", o.Why)
	}
}
