package corral_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// Three consecutive attempts that come to nothing hold the site, for longer each time. A useful attempt ends the hold,
// and an attempt that a user ended is not evidence.
func TestHold(t *testing.T) {
	t.Parallel()
	attempt := func(o corral.Outcome, workers int, lived time.Duration) corral.Job {
		return corral.Job{State: corral.JobEnded, Outcome: o, Workers: workers, SubmittedAt: noon.Add(-lived), StartedAt: noon.Add(-lived), EndedAt: noon}
	}
	failed, lost := attempt(corral.OutcomeFailed, 0, time.Second), attempt(corral.OutcomeLost, 0, time.Hour)
	short, long := attempt(corral.OutcomePreempted, 2, 59*time.Second), attempt(corral.OutcomePreempted, 2, time.Minute)
	expired, hung := attempt(corral.OutcomeExpired, 1, 10*time.Second), attempt(corral.OutcomeExpired, 0, time.Hour)
	idle, removed := attempt(corral.OutcomeIdle, 1, time.Second), attempt(corral.OutcomeRemoved, 0, time.Second)
	refused := corral.Job{State: corral.JobEnded, Outcome: corral.OutcomeFailed, EndedAt: noon}
	busy := transient(refused)
	for _, tt := range []struct {
		name   string
		recent []corral.Job // the newest first
		want   time.Duration
	}{
		{"none", nil, 0},
		{"two failed", []corral.Job{failed, failed}, 0},
		{"three failed", []corral.Job{failed, failed, failed}, time.Minute},
		{"three ways to come to nothing", []corral.Job{lost, short, hung}, time.Minute},
		{"five failed", []corral.Job{failed, failed, failed, failed, failed}, 4 * time.Minute},
		{"all that are examined failed", []corral.Job{failed, failed, failed, failed, failed, failed, failed, failed}, 10 * time.Minute},
		{"the last one expired", []corral.Job{expired, failed, failed, failed}, 0},
		{"one of three was useful", []corral.Job{failed, failed, long, failed}, 0},
		{"one of three was idle", []corral.Job{failed, idle, failed, failed}, 0},
		{"a user removed one", []corral.Job{failed, removed, failed, removed, failed}, time.Minute},
		{"three with options that the site rejects", []corral.Job{refused, refused, refused}, 0},
		{"three that the site rejected temporarily", []corral.Job{busy, busy, busy}, time.Minute},
		{"short, as asked", []corral.Job{expired, expired, expired}, 0},
	} {
		got := corral.NewHold(tt.recent)
		if tt.want == 0 && got != (corral.Hold{}) || tt.want != 0 && !got.Until.Equal(noon.Add(tt.want)) {
			t.Errorf("%s: %+v, want for %s", tt.name, got, tt.want)
		}
	}
}

// A user who waits for a held site sees the reason why its last attempt came to nothing.
func TestHoldNamesTheLastReason(t *testing.T) {
	t.Parallel()
	j := corral.Job{State: corral.JobEnded, Outcome: corral.OutcomeFailed, SubmittedAt: noon, EndedAt: noon, Reason: "no space left"}
	if got := corral.NewHold([]corral.Job{j, j, j}).Why; got != "the last 3 attempts at the site came to nothing, the last one failed: no space left" {
		t.Errorf("%q", got)
	}
	j.Reason = strings.Repeat("é", 1000)
	if got := corral.NewHold([]corral.Job{j, j, j}).Why; len(got) > 500 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// The tests of reconcile cover Trial's complete behaviour; this test checks its texts.
func TestTrial(t *testing.T) {
	t.Parallel()
	h := corral.Hold{Since: noon, Until: noon.Add(time.Minute), Why: "the last 3 attempts at the site came to nothing"}
	trial := &corral.Job{Kind: corral.PilotJob, Glidein: 7, State: corral.JobQueued, CreatedAt: noon.Add(2 * time.Minute)}
	live := slices.Values([]*corral.Job{trial})
	why, until := h.Trial(noon.Add(3*time.Minute), live)
	if why != "limit circuit breaker: the last 3 attempts at the site came to nothing; an attempt of glidein 7 tests whether it works again" || !until.Equal(noon.Add(12*time.Minute)) {
		t.Errorf("%q until %s", why, until)
	}
	if why, until := h.Trial(noon.Add(-24*time.Hour), live); why != "" {
		t.Errorf("after the clock was set back by a day: %q until %s", why, until)
	}
	if why, _ := (corral.Hold{}).Trial(noon.Add(3*time.Minute), live); why != "" {
		t.Errorf("closed: %q", why)
	}
}
