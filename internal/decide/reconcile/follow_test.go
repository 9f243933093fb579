package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// A follower is wanted 50 minutes after the start of the glidein that it follows; its start was planned for t0 + 2 h.
func TestFollowerIsWantedWhenItsPlaceIsFree(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Minute
	queued := alive(1, corral.JobQueued)
	queued.StartedAt, queued.SubmittedAt = time.Time{}, t0
	late := alive(1, corral.JobRunning)
	late.StartedAt = t0.Add(-2*time.Minute - after)
	idle := over(1, corral.OutcomeIdle)
	idle.StartedAt = t0.Add(-time.Hour)
	failed := idle
	failed.Outcome, failed.EndedAt = corral.OutcomeFailed, t0.Add(-time.Minute)
	for _, tt := range []struct {
		name    string
		earlier []corral.Job  // attempts of the glidein that it follows
		wanted  time.Duration // when that glidein is wanted
		asked   corral.Ask
		planned time.Duration
		waits   []corral.Wait
		expects time.Duration // wait for which it was planned
		short   bool          // both have a walltime of ten minutes
		at      time.Duration // new time of the follower; 0: unchanged
		submit  bool          // whether it is submitted at its planned time
	}{
		{name: "it has not been asked for", planned: 2 * time.Hour},
		{name: "it is wanted later", wanted: time.Hour, planned: 2 * time.Hour, at: time.Hour + after},
		{name: "it waits", earlier: []corral.Job{queued}, planned: 2 * time.Hour},
		{name: "it runs", earlier: []corral.Job{alive(1, corral.JobRunning)}, planned: 2 * time.Hour, at: after},
		{name: "others have waited, a little", earlier: []corral.Job{alive(1, corral.JobRunning)}, planned: 2 * time.Hour,
			waits: []corral.Wait{waited(8 * time.Second)}, at: after - 8*time.Second},
		{name: "others have waited, for long", earlier: []corral.Job{alive(1, corral.JobRunning)}, planned: 2 * time.Hour,
			waits: []corral.Wait{waited(40 * time.Minute)}, at: after - time.Minute},
		{name: "others have waited, a little longer than planned", earlier: []corral.Job{alive(1, corral.JobRunning)},
			planned: 2 * time.Hour, waits: []corral.Wait{waited(8 * time.Second)}, expects: 5 * time.Second, at: after - 3*time.Second},
		{name: "others have waited for less than planned", earlier: []corral.Job{alive(1, corral.JobRunning)},
			planned: 2 * time.Hour, waits: []corral.Wait{waited(8 * time.Second)}, expects: time.Minute, at: after},
		{name: "others have waited for long, and it is short", earlier: []corral.Job{alive(1, corral.JobRunning)},
			planned: 2 * time.Hour, waits: []corral.Wait{waited(40 * time.Minute)}, short: true, at: after - 30*time.Second},
		{name: "it runs almost as planned", earlier: []corral.Job{alive(1, corral.JobRunning)}, planned: after + 30*time.Second,
			at: after},
		{name: "it runs as planned", earlier: []corral.Job{alive(1, corral.JobRunning)}, planned: after + 20*time.Second,
			submit: true},
		{name: "it came too early", earlier: []corral.Job{late}, planned: 2 * time.Hour, at: -2 * time.Minute},
		{name: "both are due", earlier: []corral.Job{late}, planned: -time.Hour, submit: true},
		{name: "it has ended", earlier: []corral.Job{idle}, planned: 2 * time.Hour, submit: true},
		{name: "it has failed", earlier: []corral.Job{failed}, planned: 2 * time.Hour, at: -time.Minute},
		{name: "it has failed, and it is due", earlier: []corral.Job{failed}, planned: -time.Hour, submit: true},
		{name: "it was asked to leave", earlier: []corral.Job{alive(1, corral.JobRunning)}, asked: corral.AskDrain,
			planned: 2 * time.Hour, submit: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := glideinWith(resubmit.Policy{}, tt.earlier...)
			p.Walltime, p.Asked = corral.Seconds(time.Hour), tt.asked
			if tt.short {
				p.Walltime = corral.Seconds(10 * time.Minute)
			}
			if tt.wanted != 0 {
				p.NotBefore = t0.Add(tt.wanted)
			}
			g := follower(8, p)
			g.NotBefore, g.FollowsWait = t0.Add(tt.planned), corral.Seconds(tt.expects)
			w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{p, g}, Waits: tt.waits}
			var want []Retime
			if tt.at != 0 {
				want = []Retime{{Glidein: 8, At: t0.Add(tt.at)}}
			}
			got := retimed(w)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Retime{}, "Reason")); diff != "" {
				t.Fatalf("at once (-want +got):\n%s", diff)
			}
			if tt.at != 0 {
				sooner := fmt.Sprintf("; %s sooner, because waits are longer than planned", corral.Seconds(after-tt.at))
				why := got[0].Reason
				if !strings.Contains(why, "it takes over from glidein 7, ") ||
					strings.HasSuffix(why, sooner) != (0 < after-tt.at && after-tt.at <= time.Minute) ||
					tt.at == after && strings.Contains(why, "sooner") {
					t.Errorf("it says %q", why)
				}
			} else if got := submits(w, latestOf(t0, g.NotBefore), g.ID); got != tt.submit {
				t.Errorf("submitted at its planned time: %v", got)
			}
		})
	}
}

// follower returns a glidein that takes over from another glidein 50 minutes after the start of that glidein.
func follower(id corral.GlideinID, p corral.Glidein) corral.Glidein {
	g := glideinWith(resubmit.Policy{})
	g.ID, g.Walltime, g.Follows, g.FollowsAfter = id, p.Walltime, p.ID, corral.Seconds(50*time.Minute)
	return g
}

// retimed returns the followers that are assigned other times at t0.
func retimed(w World) (all []Retime) {
	for _, a := range Decide(t0, w) {
		if r, ok := a.(Retime); ok {
			all = append(all, r)
		}
	}
	return all
}

// submits reports whether an attempt of a glidein is submitted at a time.
func submits(w World, now time.Time, id corral.GlideinID) bool {
	return slices.ContainsFunc(Decide(now, w), func(a Action) bool {
		s, ok := a.(Submit)
		return ok && s.Glidein == id
	})
}

// If a follower's predecessor is removed before it ran, the follower takes over from the glidein before the
// predecessor, at the time when both would have ended.
func TestFollowerOfDroppedGlidein(t *testing.T) {
	t.Parallel()
	first := glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))
	first.Walltime = corral.Seconds(time.Hour)
	dropped := follower(8, first)
	dropped.Asked, dropped.State = corral.AskCancel, corral.GlideinDeleted
	last := follower(9, dropped)
	last.NotBefore = t0.Add(5 * time.Hour)
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{first, dropped, last}}
	if got := retimed(w); len(got) != 1 || got[0].Glidein != 9 || !got[0].At.Equal(t0.Add(100*time.Minute)) {
		t.Errorf("%+v", got)
	}
	w.Glideins[0].Attempts = nil
	if w.Glideins[2].NotBefore = t0; submits(w, t0, 9) {
		t.Error("it is submitted although the first does not run")
	}
}

// However long waits were, a third generation waits until the first has left.
func TestTwoGenerationsAtMost(t *testing.T) {
	t.Parallel()
	first := glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))
	second := follower(8, first)
	second.Attempts, second.State = []corral.Job{alive(2, corral.JobRunning)}, corral.GlideinActive
	third := follower(9, second)
	third.FollowsAfter = 0
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{first, second, third}}
	if submits(w, t0.Add(time.Second), 9) {
		t.Error("three generations are there at once")
	}
	if o := Outlook(t0, w, third); !strings.Contains(o.Why, "from glidein 8, which takes over from glidein 7, which has not left yet") {
		t.Errorf("it says %q", o.Why)
	}
	w.Glideins[0].Attempts = []corral.Job{over(1, corral.OutcomeExpired)}
	w.Glideins[0].State = corral.GlideinFinished
	if !submits(w, t0.Add(time.Second), 9) {
		t.Error("it is not submitted although the first has left")
	}
}

// If a follower's place is occupied, its outlook shows this reason instead of only a time.
func TestFollowerNamesItsPredecessor(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	r.must(CreateGlidein{Glidein: forever()})
	g := forever()
	g.Follows, g.FollowsAfter, g.NotBefore = 1, corral.Seconds(time.Minute), t0.Add(time.Minute)
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
