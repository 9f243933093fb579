package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// waited returns an attempt of one cpu that waited for the given time, before the world began.
func waited(d time.Duration) corral.Wait {
	return corral.Wait{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Minute), SubmittedAt: t0.Add(-time.Hour), StartedAt: t0.Add(d - time.Hour)}
}

// The workers serve for 55 s of the pilot's minute: 3 s are reserved for leaving, and 2 s for ending tasks. The
// successor is submitted early enough to run for 20 s before the 55 s are over, if it waits no longer than nine of ten
// attempts have.
func TestOverlapRestsOnWaits(t *testing.T) {
	t.Parallel()
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever}, alive(1, corral.JobRunning))
	g.CPUs, g.Hosts, g.Overlap = 1, 1, corral.Seconds(20*time.Second)
	still := waited(0)
	still.StartedAt = time.Time{}
	gaveUp := still
	gaveUp.EndedAt, gaveUp.Outcome = still.SubmittedAt.Add(30*time.Second), corral.OutcomeRemoved
	wide := waited(30 * time.Second)
	wide.CPUs = 64
	elsewhere := waited(30 * time.Second)
	elsewhere.Queue = "long"
	const most = "; nine of ten attempts at the site wait "
	for _, tt := range []struct {
		name  string
		queue string
		waits []corral.Wait
		at    time.Duration // time of the submission
		why   string
	}{
		{"none is known", "", nil, 35 * time.Second, ""},
		{"none had to wait", "", []corral.Wait{waited(0)}, 35 * time.Second, ""},
		{"one", "", []corral.Wait{waited(10 * time.Second)}, 25 * time.Second, most + "10s at most"},
		{"the longest of a few", "", []corral.Wait{waited(time.Second), waited(10 * time.Second), waited(0)}, 25 * time.Second, most + "10s at most"},
		{"one of many is longer", "", append(slices.Repeat([]corral.Wait{waited(5 * time.Second)}, 19), waited(time.Hour)), 30 * time.Second, most + "5s at most"},
		{"one waits still, and says nothing", "", []corral.Wait{waited(10 * time.Second), still}, 25 * time.Second, most + "10s at most"},
		{"one gave up", "", []corral.Wait{waited(10 * time.Second), gaveUp}, 5 * time.Second, "; waits at the site are 30s at least"},
		{"wider ones wait longer", "", []corral.Wait{waited(10 * time.Second), wide}, 25 * time.Second, most + "10s at most"},
		{"only wider ones are known", "", []corral.Wait{wide}, 5 * time.Second, most + "30s at most"},
		{"another queue is slower", "short", []corral.Wait{waited(10 * time.Second), elsewhere}, 25 * time.Second, most + "10s at most"},
		{"longer than the walltime", "", []corral.Wait{waited(time.Hour)}, 0, most + "1h0m0s at most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := g
			g.Queue = tt.queue
			w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{g}, Waits: tt.waits}
			if tt.at > 0 {
				early := t0.Add(tt.at - time.Millisecond)
				if got := kinds(Decide(early, w)); len(got) != 0 {
					t.Errorf("just before %s: %q", tt.at, got)
				}
				if due := Due(early, w); !due.Equal(t0.Add(tt.at)) {
					t.Errorf("due at %s, want %s", due.Sub(t0), tt.at)
				}
			}
			actions := Decide(t0.Add(tt.at), w)
			if diff := cmp.Diff([]string{"submit pilot"}, kinds(actions)); diff != "" {
				t.Fatalf("at %s (-want +got):\n%s", tt.at, diff)
			}
			if why := actions[0].Why(); why != "resubmit forever, overlapping attempt 1 by 20s"+tt.why {
				t.Errorf("it says %q, want %q at the end", why, tt.why)
			}
		})
	}
}

// Attempts are as wide as the cpus of all their hosts.
func TestOverlapRestsOnWaitsOfTheSameWidth(t *testing.T) {
	t.Parallel()
	narrow, wide := waited(10*time.Second), waited(30*time.Second)
	narrow.CPUs, wide.Hosts, wide.CPUs = 2, 2, 4
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever}, alive(1, corral.JobRunning))
	g.Hosts, g.CPUs, g.Overlap = 4, 2, corral.Seconds(20*time.Second)
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{g}, Waits: []corral.Wait{narrow, wide}}
	if due := Due(t0, w); !due.Equal(t0.Add(5 * time.Second)) {
		t.Errorf("the successor is due after %s, want 5s", due.Sub(t0))
	}
}

// Whatever the known waits are, there are never three generations, and the successor is submitted no later than the
// overlap requires and no earlier than the longest wait justifies.
func TestOverlapBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := drawWorld(t)
		g := &w.Glideins[0]
		w.Waits = nil
		longest := time.Duration(0)
		for range rapid.IntRange(0, 30).Draw(t, "waits") {
			d := time.Duration(rapid.IntRange(0, 7200).Draw(t, "wait")) * time.Second
			w.Waits, longest = append(w.Waits, waited(d)), max(longest, d)
		}
		live := g.Live()
		submits := slices.Contains(kinds(Decide(now, w)), "submit pilot")
		if submits && len(live) > 1 {
			t.Fatalf("a third generation is submitted")
		}
		if g.Overlap == 0 || len(live) != 1 || live[0].State != corral.JobRunning {
			return
		}
		by := workersLeave(g, live[0]).Add(-time.Duration(g.Overlap))
		if at := overlapAt(&w, g, live[0]); at.After(by) || at.Before(by.Add(-longest)) {
			t.Fatalf("submitted at %s, want %s at most, and %s at least", at, by, by.Add(-longest))
		}
	})
}

func TestOutlook(t *testing.T) {
	t.Parallel()
	forever := resubmit.Policy{Mode: resubmit.Forever, Retries: 2}
	twice := resubmit.Policy{Mode: resubmit.Times, Limit: 2}
	lap := func(g corral.Glidein) corral.Glidein { g.Overlap = corral.Seconds(20 * time.Second); return g }
	asked := glideinWith(forever, alive(1, corral.JobRunning))
	asked.Asked = corral.AskDrain
	finished := glideinWith(resubmit.Policy{}, over(1, corral.OutcomeExpired))
	finished.State, finished.Reason = corral.GlideinFinished, "no resubmission requested"
	planned, unsettled := glideinWith(forever), glideinWith(forever)
	planned.NotBefore = t0.Add(time.Hour)
	unsettled.State, unsettled.Reason = corral.GlideinNew, "requested"
	queued := glideinWith(forever, alive(1, corral.JobQueued))
	queued.QueueLimit = corral.Seconds(time.Hour)
	lost := glideinWith(forever, over(1, corral.OutcomeLost))
	_, retry, _ := lost.Next(t0)
	failed := lap(glideinWith(forever, alive(1, corral.JobRunning), over(2, corral.OutcomeLost)))
	failed.Attempts[1].EndedAt = t0.Add(44 * time.Second)
	_, notBefore, _ := failed.Next(failed.Attempts[1].EndedAt)
	held := corral.Hold{Until: t0.Add(5 * time.Minute), Why: "the last 3 attempts at the site came to nothing"}
	const leave = 55 * time.Second
	for _, tt := range []struct {
		name    string
		g       corral.Glidein
		held    corral.Hold
		next    corral.NextStep
		attempt int
		at      time.Time
		why     string
	}{
		{"over", finished, corral.Hold{}, corral.NextNothing, 0, time.Time{}, "no resubmission requested"},
		{"asked to drain", asked, corral.Hold{}, corral.NextLeave, 0, time.Time{}, "asked to drain"},
		{"new", glideinWith(forever), corral.Hold{}, corral.NextSubmit, 1, time.Time{}, "first attempt; to be submitted"},
		{"new, and not settled yet", unsettled, corral.Hold{}, corral.NextSubmit, 1, time.Time{}, "first attempt"},
		{"planned", planned, corral.Hold{}, corral.NextSubmit, 1, planned.NotBefore, "first attempt; to be submitted"},
		{"held", glideinWith(forever), held, corral.NextSubmit, 1, held.Until, "first attempt; to be submitted; " + held.Why},
		{"lost", lost, corral.Hold{}, corral.NextSubmit, 2, retry, "retry 1 of 2; back-off until 2026-01-02T03:04:07Z"},
		{"queued", queued, corral.Hold{}, corral.NextStart, 1, queued.LatestStart(queued.Attempts[0]), "it waits in the site's queue, and is cancelled if it has not started by then"},
		{"runs, and is the only one", glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning)), corral.Hold{}, corral.NextFinish, 0, t0.Add(leave), "no resubmission requested"},
		{"runs, and another follows", glideinWith(twice, alive(1, corral.JobRunning)), corral.Hold{}, corral.NextSubmit, 2, t0.Add(leave), "resubmission 1 of 2"},
		{"runs, and another overlaps", lap(glideinWith(twice, alive(1, corral.JobRunning))), corral.Hold{}, corral.NextSubmit, 2, t0.Add(leave - 20*time.Second), "resubmission 1 of 2, overlapping attempt 1 by 20s"},
		{"runs as the last", glideinWith(twice, over(1, corral.OutcomeExpired), over(2, corral.OutcomeExpired), alive(3, corral.JobRunning)), corral.Hold{}, corral.NextFinish, 0, t0.Add(leave), "all 2 resubmissions used"},
		{"runs, and its successor was lost", failed, corral.Hold{}, corral.NextSubmit, 3, notBefore, "retry 1 of 2, overlapping attempt 1 by 20s"},
		{"its successor waits", lap(glideinWith(forever, alive(1, corral.JobRunning), alive(2, corral.JobQueued))), corral.Hold{}, corral.NextStart, 2, time.Time{}, "it waits in the site's queue to take over from attempt 1"},
		{"its successor runs", lap(glideinWith(forever, alive(1, corral.JobRunning), alive(2, corral.JobRunning))), corral.Hold{}, corral.NextLeave, 1, time.Time{}, "attempt 2 has taken over"},
	} {
		w := World{Site: corral.Site{State: corral.SiteReady}, Held: tt.held, Glideins: []corral.Glidein{tt.g}}
		got := Outlook(t0, w, tt.g)
		if diff := cmp.Diff(corral.Outlook{Next: tt.next, Attempt: tt.attempt, At: tt.at, Why: tt.why}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
