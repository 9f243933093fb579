package corral_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var forever = resubmit.Policy{Mode: resubmit.Forever}

// A derivation is one case of Glidein.Derive: a row of docs/states.md and of TestDerive.
type derivation struct {
	asked     corral.Ask
	attempts  []corral.Job
	site      corral.SiteState
	policy    resubmit.Policy
	notBefore time.Time
	held      corral.Hold
	lack      corral.Lack
	before    corral.GlideinState // the state it had; empty: WAITING
	want      corral.GlideinState
	wantWord  string // part of the reason
}

func live(s corral.JobState) corral.Job { return corral.Job{State: s} }

func ended(o corral.Outcome) corral.Job {
	return corral.Job{State: corral.JobEnded, Outcome: o, EndedAt: noon.Add(-time.Second)}
}

func transient(j corral.Job) corral.Job {
	j.Transient = true
	return j
}

var (
	staging  = corral.Lack{Why: "package htcondor-23.9.6-x86_64-linux-static is being staged"}
	unstaged = corral.Lack{Why: "package htcondor-23.9.6-x86_64-linux-static could not be staged: no mirror has it", Final: true}
)

func limit(n int) resubmit.Policy { return resubmit.Policy{Mode: resubmit.Times, Limit: n} }

var derivations = []derivation{
	{site: corral.SiteStaging, want: corral.GlideinWaiting, wantWord: "site not ready"},
	{site: corral.SiteFailed, want: corral.GlideinFailed, wantWord: "site is FAILED"},
	{site: corral.SiteExiting, want: corral.GlideinWaiting, wantWord: "site not ready"},
	{site: corral.SiteRemoving, want: corral.GlideinFailed, wantWord: "site is REMOVING"},
	{site: corral.SiteReady, notBefore: noon.Add(time.Hour), want: corral.GlideinWaiting, wantWord: "not before 2026-11-21T13:00:00Z"},
	{site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "to be submitted"},
	{site: corral.SiteReady, held: corral.Hold{Until: noon.Add(time.Minute), Why: "the last 3 attempts at the site came to nothing"}, want: corral.GlideinWaiting, wantWord: "limit circuit breaker"},

	{site: corral.SiteReady, lack: staging, want: corral.GlideinWaiting, wantWord: "is being staged"},
	{site: corral.SiteReady, lack: unstaged, want: corral.GlideinFailed, wantWord: "could not be staged"},
	{site: corral.SiteStaging, lack: unstaged, want: corral.GlideinWaiting, wantWord: "site not ready"},
	{attempts: []corral.Job{live(corral.JobRunning)}, site: corral.SiteReady, lack: unstaged, want: corral.GlideinActive, wantWord: "attempt 1 RUNNING"},
	{attempts: []corral.Job{ended(corral.OutcomeIdle)}, site: corral.SiteReady, lack: unstaged, want: corral.GlideinFinished, wantWord: "attempt 1 idle"},

	{attempts: []corral.Job{live(corral.JobNew)}, site: corral.SiteReady, want: corral.GlideinActive, wantWord: "attempt 1 NEW"},
	{attempts: []corral.Job{live(corral.JobQueued)}, site: corral.SiteReady, want: corral.GlideinActive, wantWord: "attempt 1 QUEUED"},
	{attempts: []corral.Job{live(corral.JobRunning), live(corral.JobQueued)}, site: corral.SiteReady, want: corral.GlideinActive, wantWord: "attempt 1 RUNNING"},
	{attempts: []corral.Job{live(corral.JobRunning)}, site: corral.SiteFailed, want: corral.GlideinActive, wantWord: "attempt 1 RUNNING"},

	{attempts: []corral.Job{ended(corral.OutcomeExpired)}, site: corral.SiteReady, want: corral.GlideinFinished, wantWord: "no resubmission requested"},
	{attempts: []corral.Job{ended(corral.OutcomeExpired)}, policy: limit(1), site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "to be submitted"},
	{attempts: []corral.Job{ended(corral.OutcomeExpired), ended(corral.OutcomeExpired)}, policy: limit(1), site: corral.SiteReady, want: corral.GlideinFinished, wantWord: "all 1 resubmissions used"},
	{attempts: []corral.Job{ended(corral.OutcomeExpired)}, policy: forever, site: corral.SiteFailed, want: corral.GlideinFailed, wantWord: "site is FAILED"},
	{attempts: []corral.Job{ended(corral.OutcomeIdle)}, policy: forever, site: corral.SiteReady, want: corral.GlideinFinished, wantWord: "attempt 1 idle"},
	{attempts: []corral.Job{ended(corral.OutcomeExpired)}, policy: resubmit.Policy{Mode: resubmit.Until, Deadline: noon}, site: corral.SiteReady, want: corral.GlideinFinished, wantWord: "past 2026-11-21T12:00:00Z"},

	{attempts: []corral.Job{ended(corral.OutcomeLost)}, site: corral.SiteReady, want: corral.GlideinFailed, wantWord: "0 retries allowed"},
	{attempts: []corral.Job{ended(corral.OutcomeLost)}, policy: resubmit.Policy{Retries: 1}, site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "back-off until"},
	{attempts: []corral.Job{ended(corral.OutcomePreempted)}, policy: resubmit.Policy{Retries: 1}, site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "back-off until"},
	{attempts: []corral.Job{transient(ended(corral.OutcomeFailed))}, policy: resubmit.Policy{Retries: 1}, site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "back-off until"},
	{attempts: []corral.Job{ended(corral.OutcomeFailed)}, policy: resubmit.Policy{Retries: 1}, site: corral.SiteReady, want: corral.GlideinFailed, wantWord: "attempt 1 failed"},
	{attempts: []corral.Job{ended(corral.OutcomeDuplicate)}, site: corral.SiteReady, want: corral.GlideinWaiting, wantWord: "to be submitted"},

	{asked: corral.AskDrain, attempts: []corral.Job{live(corral.JobRunning)}, site: corral.SiteReady, want: corral.GlideinRemoving, wantWord: "asked to drain"},
	{asked: corral.AskCancel, attempts: []corral.Job{live(corral.JobNew)}, site: corral.SiteReady, want: corral.GlideinRemoving, wantWord: "asked to cancel"},
	{asked: corral.AskCancel, attempts: []corral.Job{ended(corral.OutcomeRemoved)}, site: corral.SiteReady, want: corral.GlideinDeleted, wantWord: "removed"},
	{asked: corral.AskCancel, site: corral.SiteNew, want: corral.GlideinDeleted, wantWord: "removed"},

	{before: corral.GlideinFinished, attempts: []corral.Job{ended(corral.OutcomeIdle)}, site: corral.SiteDeleted, want: corral.GlideinFinished, wantWord: "(as before)"},
	{before: corral.GlideinDeleted, asked: corral.AskCancel, site: corral.SiteReady, want: corral.GlideinDeleted, wantWord: "(as before)"},
}

func (d derivation) glidein() corral.Glidein {
	g := corral.Glidein{ID: 7, Asked: d.asked, Resubmit: d.policy, NotBefore: d.notBefore,
		State: corral.GlideinWaiting, Reason: "(as before)"}
	if d.before != "" {
		g.State = d.before
	}
	for i, a := range d.attempts {
		a.Kind, a.Number = corral.PilotJob, i+1
		g.Attempts = append(g.Attempts, a)
	}
	return g
}

func (d derivation) attemptNames() string {
	var names []string
	for _, a := range d.attempts {
		switch {
		case a.State != corral.JobEnded:
			names = append(names, string(a.State))
		case a.Transient:
			names = append(names, string(a.Outcome)+" (transient)")
		default:
			names = append(names, string(a.Outcome))
		}
	}
	return orDash(strings.Join(names, ", "))
}

func (d derivation) conditions() string {
	var all []string
	if d.policy.Mode != "" {
		all = append(all, "resubmit "+d.policy.String())
	}
	if d.policy.Retries > 0 {
		all = append(all, fmt.Sprintf("%d retries", d.policy.Retries))
	}
	if !d.notBefore.IsZero() {
		all = append(all, "not before 13:00, now 12:00")
	}
	if d.held != (corral.Hold{}) {
		all = append(all, "circuit breaker open until 12:01")
	}
	switch {
	case d.lack.Final:
		all = append(all, "lacks a package for good")
	case d.lack.Why != "":
		all = append(all, "lacks a package")
	}
	if d.before != "" {
		all = append(all, "was "+string(d.before))
	}
	return orDash(strings.Join(all, ", "))
}

func TestDerive(t *testing.T) {
	t.Parallel()
	for _, d := range derivations {
		g := d.glidein()
		state, reason := g.Derive(d.site, d.held, d.lack, noon)
		if state != d.want || !strings.Contains(reason, d.wantWord) {
			t.Errorf("Derive of asked %q, attempts %s, site %s, %s = %s, %q; want %s, %q",
				d.asked, d.attemptNames(), d.site, d.conditions(), state, reason, d.want, d.wantWord)
		}
	}
}

// play submits and ends attempts, each with the next outcome, as long as the glidein requests another attempt, and
// returns the final glidein. It advances the time beyond back-offs.
func play(t *testing.T, g corral.Glidein, outcomes func(n int) corral.Job) (corral.Glidein, time.Time) {
	t.Helper()
	now := noon
	for range 100 {
		g.State, g.Reason = g.Derive(corral.SiteReady, corral.Hold{}, corral.Lack{}, now)
		if g.State != corral.GlideinWaiting {
			return g, now
		}
		if _, notBefore, _ := g.Next(now); now.Before(notBefore) {
			now = notBefore
			continue
		}
		a := outcomes(len(g.Attempts))
		a.Number, a.EndedAt = len(g.Attempts)+1, now.Add(time.Minute)
		g.Attempts = append(g.Attempts, a)
		now = a.EndedAt
	}
	return g, now
}

func always(o corral.Outcome) func(int) corral.Job {
	return func(int) corral.Job { return ended(o) }
}

func TestResubmitTwoIsThreeAttempts(t *testing.T) {
	t.Parallel()
	g, _ := play(t, corral.Glidein{ID: 1, Resubmit: limit(2)}, always(corral.OutcomeExpired))
	if len(g.Attempts) != 3 || g.State != corral.GlideinFinished {
		t.Errorf("--resubmit 2: %d attempts and %s, want 3 and FINISHED", len(g.Attempts), g.State)
	}
}

func TestIdleEndsForever(t *testing.T) {
	t.Parallel()
	g, _ := play(t, corral.Glidein{ID: 1, Resubmit: forever}, always(corral.OutcomeIdle))
	if len(g.Attempts) != 1 || g.State != corral.GlideinFinished {
		t.Errorf("idle with --resubmit forever: %d attempts and %s, want 1 and FINISHED", len(g.Attempts), g.State)
	}
}

func TestLostIsRetriedWithBackOff(t *testing.T) {
	t.Parallel()
	const retries = 4
	g, end := play(t, corral.Glidein{ID: 1, Resubmit: resubmit.Policy{Retries: retries}}, always(corral.OutcomeLost))
	if len(g.Attempts) != retries+1 || g.State != corral.GlideinFailed {
		t.Errorf("lost with %d retries: %d attempts and %s, want %d and FAILED", retries, len(g.Attempts), g.State, retries+1)
	}
	least := (retries+1)*time.Minute + resubmit.BackoffMin*(1+2+4+8)
	if took := end.Sub(noon); took < least {
		t.Errorf("lost with %d retries took %s, want at least %s: back-off doubles", retries, took, least)
	}
}

func TestForeverOutlivesSingleLosses(t *testing.T) {
	t.Parallel()
	everyThirdIsLost := func(n int) corral.Job {
		if n%3 == 2 {
			return ended(corral.OutcomeLost)
		}
		return ended(corral.OutcomeExpired)
	}
	g, _ := play(t, corral.Glidein{ID: 1, Resubmit: resubmit.Policy{Mode: resubmit.Forever, Retries: 1}}, everyThirdIsLost)
	if g.State != corral.GlideinWaiting || len(g.Attempts) < 50 {
		t.Errorf("forever with single losses: %d attempts and %s, want it to go on", len(g.Attempts), g.State)
	}
}

// TestDeriveProperties draws glideins that the store could hold and checks the properties of every derivation.
func TestDeriveProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGlidein(t)
		site := rapid.SampledFrom(corral.SiteStates).Draw(t, "site")
		now := noon.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "now")) * time.Second)
		held := corral.Hold{Until: noon.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "held")) * time.Second), Why: "a reason"}
		lack := rapid.SampledFrom([]corral.Lack{{}, staging, unstaged}).Draw(t, "lack")
		state, reason := g.Derive(site, held, lack, now)

		if !slices.Contains(corral.GlideinStates, state) {
			t.Fatalf("state %q is not in the list", state)
		}
		if again, why := g.Derive(site, held, lack, now); again != state || why != reason {
			t.Fatalf("second Derive = %s, %q; first was %s, %q", again, why, state, reason)
		}
		if len(g.Live()) > 0 && state.Terminal() && g.State != corral.GlideinDeleted {
			t.Fatalf("%s with a live attempt", state)
		}
		if reason == "" && g.State != corral.GlideinDeleted && !g.State.Terminal() {
			t.Fatalf("%s without a reason", state)
		}
		g.State, g.Reason = state, reason
		if state.Terminal() && len(g.Live()) == 0 && g.Asked == corral.AskNothing {
			if later, _ := g.Derive(site, held, lack, now.Add(240*time.Hour)); later != state {
				t.Fatalf("%s became %s by waiting", state, later)
			}
		}
	})
}

func drawGlidein(t *rapid.T) corral.Glidein {
	g := corral.Glidein{
		ID:    corral.GlideinID(rapid.Int64Range(1, 1000).Draw(t, "id")),
		Asked: rapid.SampledFrom([]corral.Ask{corral.AskNothing, corral.AskDrain, corral.AskCancel}).Draw(t, "asked"),
		State: rapid.SampledFrom(corral.GlideinStates).Draw(t, "state"),
		Resubmit: rapid.SampledFrom([]resubmit.Policy{{}, forever, limit(2), {Retries: 2},
			{Mode: resubmit.Until, Deadline: noon}}).Draw(t, "policy"),
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "attempts") {
		a := corral.Job{Kind: corral.PilotJob, Number: i + 1, EndedAt: noon.Add(time.Duration(i-5) * time.Minute)}
		a.State = rapid.SampledFrom(corral.JobStates).Draw(t, "job state")
		if a.State == corral.JobEnded {
			a.Outcome = rapid.SampledFrom(corral.Outcomes).Draw(t, "outcome")
			a.Transient = rapid.Bool().Draw(t, "transient")
		}
		g.Attempts = append(g.Attempts, a)
	}
	return g
}

func TestShown(t *testing.T) {
	t.Parallel()
	g := corral.Glidein{State: corral.GlideinActive, Reason: "attempt 2 QUEUED", Attempts: []corral.Job{
		{Number: 1, State: corral.JobEnded}, {Number: 2, State: corral.JobQueued}, {Number: 3, State: corral.JobSubmitted}}}
	if state, reason := g.Shown(); state != "QUEUED" || reason != "" {
		t.Errorf("an ACTIVE glidein is shown as %q, %q, want QUEUED and no reason", state, reason)
	}
	g.SiteName, g.Attempts[2].State, g.Attempts[2].Reason = "hpc", corral.JobQueued, "Priority"
	if state, reason := g.Shown(); state != "QUEUED" || reason != "hpc says: Priority" {
		t.Errorf("one that waits is shown as %q, %q", state, reason)
	}
	g.State, g.Reason = corral.GlideinRemoving, "asked to drain"
	if state, reason := g.Shown(); state != "REMOVING" || reason != "asked to drain" {
		t.Errorf("a REMOVING glidein is shown as %q, %q", state, reason)
	}
}
