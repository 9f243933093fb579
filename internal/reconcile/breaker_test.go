package reconcile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// Whatever became of the attempts at a site, and whatever the clock did: there is always a time, not far away, at which
// one that waits is submitted. Nothing that hangs in the queue or comes to nothing keeps all others away for ever.
func TestCircuitBreakerAlwaysTriesAgain(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Hour // after clocks that were set back holds may follow each other
	rapid.Check(t, func(t *rapid.T) {
		w := World{Site: corral.Site{Name: "hpc", State: corral.SiteReady}}
		now := t0.Add(time.Hour)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, "later")))
			if rapid.IntRange(0, 4).Draw(t, "the clock is set back") == 0 {
				now = now.Add(-time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "by")))
			}
			submitNext(&w, now)
			happen(t, &w, now)
		}
		w.Glideins = append(w.Glideins, fresh(len(w.Glideins)+1, now))
		for began, last := now, len(w.Glideins); ; {
			w.Held = heldAt(w, now)
			submit, says := turnsOf(now, w)
			if len(submit) > 0 {
				return
			}
			if now.Sub(began) > patience {
				t.Fatalf("glidein %d is not submitted from %s to %s: %+v, says %q", last, began, now, w.Held, says[corral.GlideinID(last)])
			}
			next := now.Add(time.Minute)
			if due := Due(now, w); !due.IsZero() && due.Before(next) {
				next = due
			}
			now = next
		}
	})
}

// fresh is a glidein without an attempt.
func fresh(id int, now time.Time) corral.Glidein {
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever, Retries: 99})
	g.ID, g.CreatedAt, g.Walltime = corral.GlideinID(id), now, corral.Seconds(time.Hour)
	return g
}

// submitNext has one more glidein, and submits what has its turn.
func submitNext(w *World, now time.Time) {
	w.Glideins = append(w.Glideins, fresh(len(w.Glideins)+1, now))
	w.Held = heldAt(*w, now)
	submit, _ := turnsOf(now, *w)
	for _, id := range submit {
		g := &w.Glideins[id-1]
		g.Attempts = append(g.Attempts, corral.Job{Kind: corral.PilotJob, Glidein: id, Number: len(g.Attempts) + 1, State: corral.JobQueued, CreatedAt: now, SubmittedAt: now})
	}
}

// happen lets attempts start, register workers, and end.
func happen(t *rapid.T, w *World, now time.Time) {
	for i := range w.Glideins {
		for k := range w.Glideins[i].Attempts {
			a := &w.Glideins[i].Attempts[k]
			if !a.Live() || i%3 == 0 { // those of every third glidein hang in the queue
				continue
			}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				a.State, a.StartedAt = corral.JobRunning, latest(now, a.CreatedAt)
			case 1:
				a.State, a.Workers, a.StartedAt = corral.JobRunning, 1, latest(now, a.CreatedAt)
			case 2, 3, 4, 5:
				a.State, a.EndedAt = corral.JobEnded, latest(now, latest(a.CreatedAt, a.StartedAt))
				a.Outcome = rapid.SampledFrom([]corral.Outcome{corral.OutcomeFailed, corral.OutcomeLost, corral.OutcomePreempted, corral.OutcomeExpired, corral.OutcomeRemoved}).Draw(t, "outcome")
				a.Transient = a.Outcome == corral.OutcomeFailed
			}
		}
	}
}

// heldAt is the hold as the store finds it.
func heldAt(w World, now time.Time) corral.Hold {
	var over []corral.Job
	for _, g := range w.Glideins {
		for _, a := range g.Attempts {
			if !a.Live() && !a.EndedAt.After(now) && a.Tells() {
				over = append(over, a)
			}
		}
	}
	slices.SortStableFunc(over, func(a, b corral.Job) int { return b.EndedAt.Compare(a.EndedAt) })
	return corral.NewHold(over[:min(len(over), corral.HoldHistory)])
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
