package reconcile

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// How fast attempts are submitted to one site: at most SubmitMost in any SubmitWindow. A batch system serves others,
// too, and many a site's rules forbid to hammer on it.
const (
	SubmitMost   = 20
	SubmitWindow = 2 * time.Second
)

// turns say which of the glideins that want another attempt get one now.
type turns struct {
	submits []Action                         // the one that has waited longest first
	lacks   map[corral.GlideinID]corral.Lack // of those that must wait for others
	next    time.Time                        // when time alone gives another its turn; zero: it does not
}

// has reports whether a glidein submits now.
func (t turns) has(id corral.GlideinID) bool {
	return slices.ContainsFunc(t.submits, func(a Action) bool { return a.(Submit).Glidein == id })
}

// A candidate is a glidein that wants another attempt.
type candidate struct {
	g     corral.Glidein
	why   string
	since time.Time
}

// takeTurns shares out what the site has room for. The glidein that has waited longest comes first: by id, one that is
// resubmitted forever would keep all later ones from a site with a limit. Three things bound the room: the limits of
// the site, which count what has just been granted; the trial that a circuit breaker lets through; and the pace. The
// first two are worth a word to the user, as what the glidein lacks.
func takeTurns(now time.Time, w World) turns {
	t := turns{lacks: map[corral.GlideinID]corral.Lack{}}
	wanting := candidates(now, w)
	if len(wanting) == 0 {
		return t
	}
	live := w.attempts()
	load := corral.Load{}
	for _, a := range live {
		load = load.Add(a)
	}
	room, nextRoom := w.pace(now)
	trial, trialEnds := w.Held.Trial(now, live)
	for _, c := range wanting {
		full := w.Site.Full(load)
		switch {
		case full != "":
			t.lacks[c.g.ID] = corral.Lack{Why: full}
		case trial != "":
			t.lacks[c.g.ID] = corral.Lack{Why: trial}
			t.next = soonest(t.next, trialEnds)
		case room == 0: // its turn comes soon: not worth a word
			t.next = soonest(t.next, nextRoom)
		default:
			t.submits = append(t.submits, Submit{Kind: corral.PilotJob, Glidein: c.g.ID, Reason: c.why})
			load.Queued++
			room--
			next := corral.Job{Kind: corral.PilotJob, Glidein: c.g.ID, State: corral.JobNew, CreatedAt: now}
			trial, trialEnds = w.Held.Trial(now, append(live, next))
		}
	}
	return t
}

// candidates are those that want another attempt now, the one that has waited longest first.
func candidates(now time.Time, w World) []candidate {
	var all []candidate
	for _, g := range w.Glideins {
		if wants, why := wantsAttempt(now, w, g, g.Live()); wants {
			all = append(all, candidate{g, why, waitsSince(w, g)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.since.Compare(b.since) })
	return all
}

// waitsSince is since when a glidein has wanted its next attempt.
func waitsSince(w World, g corral.Glidein) time.Time {
	since := g.CreatedAt
	if g.NotBefore.After(since) {
		since = g.NotBefore
	}
	if n := len(g.Attempts); n > 0 {
		last := g.Attempts[n-1]
		if last.Live() {
			return overlapAt(w, g, last)
		}
		return last.EndedAt
	}
	return since
}

// attempts are the site's live ones.
func (w World) attempts() []corral.Job {
	var live []corral.Job
	for _, g := range w.Glideins {
		live = append(live, g.Live()...)
	}
	return live
}

// pace returns how many attempts may be asked for now, and if it is none, when it is one. It follows from when the last
// ones were asked for, so that a corrald that was restarted has not forgotten them.
func (w World) pace(now time.Time) (n int, next time.Time) {
	var asked []time.Time
	for _, a := range slices.Concat(w.attempts(), w.Over) {
		if end := a.CreatedAt.Add(SubmitWindow); end.After(now) && !a.CreatedAt.After(now) {
			asked = append(asked, end)
		}
	}
	if len(asked) < SubmitMost {
		return SubmitMost - len(asked), time.Time{}
	}
	slices.SortFunc(asked, time.Time.Compare)
	return 0, asked[len(asked)-SubmitMost]
}

// soonest returns the earlier of two times; a zero one is never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
