package reconcile

import (
	"iter"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// The pace at which attempts are submitted to one site: at most SubmitMost in any SubmitWindow. A batch system also
// serves other users, and many sites forbid frequent requests.
const (
	SubmitMost   = 20
	SubmitWindow = 2 * time.Second
)

// turns records which of the glideins that want another attempt may submit one now.
type turns struct {
	submits []Action                         // submissions to make now, the longest waiting first
	lacks   map[corral.GlideinID]corral.Lack // lacks of the glideins that must wait for others
	next    time.Time                        // when time alone allows another submission; zero: never
}

// has reports whether a glidein submits now.
func (t turns) has(id corral.GlideinID) bool {
	return slices.ContainsFunc(t.submits, func(a Action) bool { return a.(Submit).Glidein == id })
}

// A candidate is a glidein that wants another attempt.
type candidate struct {
	g     *corral.Glidein
	why   string
	since time.Time
}

// takeTurns distributes the site's capacity. The glidein that has waited longest is served first: in the order of ids,
// a glidein that is resubmitted forever would keep all later glideins from a site with a limit. The capacity is bounded
// by the limits of the site, including the attempts just granted, by the trial that a circuit breaker permits, and by
// the pace. The first two bounds are reported to the user as the glidein's lack.
func takeTurns(now time.Time, w *World) turns {
	t := turns{lacks: map[corral.GlideinID]corral.Lack{}}
	wanting := candidates(now, w)
	if len(wanting) == 0 {
		return t
	}
	load := corral.Load{}
	for a := range w.attempts() {
		load = load.Add(a)
	}
	room, nextRoom := w.pace(now)
	trial, trialEnds := w.Held.Trial(now, w.attempts())
	for _, c := range wanting {
		full := w.Site.Full(load)
		switch {
		case full != "":
			t.lacks[c.g.ID] = corral.Lack{Why: full}
		case trial != "":
			t.lacks[c.g.ID] = corral.Lack{Why: trial}
			t.next = soonest(t.next, trialEnds)
		case room == 0: // the glidein can submit soon, so the wait is not worth reporting
			t.next = soonest(t.next, nextRoom)
		default:
			t.submits = append(t.submits, Submit{Kind: corral.PilotJob, Glidein: c.g.ID, Reason: c.why})
			load.Queued++
			room--
			next := &corral.Job{Kind: corral.PilotJob, Glidein: c.g.ID, State: corral.JobNew, CreatedAt: now}
			trial, trialEnds = w.Held.Trial(now, func(yield func(*corral.Job) bool) {
				for a := range w.attempts() {
					if !yield(a) {
						return
					}
				}
				yield(next)
			})
		}
	}
	return t
}

// candidates returns the glideins that want another attempt now, the longest waiting first.
func candidates(now time.Time, w *World) []candidate {
	var all []candidate
	for i := range w.Glideins {
		g := &w.Glideins[i]
		if wants, why := wantsAttempt(now, w, g, g.Live()); wants {
			all = append(all, candidate{g, why, waitsSince(w, g)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.since.Compare(b.since) })
	return all
}

// waitsSince returns since when a glidein has wanted its next attempt.
func waitsSince(w *World, g *corral.Glidein) time.Time {
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

// attempts returns the site's live attempts.
func (w *World) attempts() iter.Seq[*corral.Job] {
	return func(yield func(*corral.Job) bool) {
		for i := range w.Glideins {
			all := w.Glideins[i].Attempts
			for k := range all {
				if all[k].Live() && !yield(&all[k]) {
					return
				}
			}
		}
	}
}

// pace returns how many attempts may be requested now and, if that number is 0, when the next attempt may be requested.
// It depends on the recorded times of the last requests, which survive a restart of corrald.
func (w *World) pace(now time.Time) (n int, next time.Time) {
	var asked []time.Time
	consider := func(a *corral.Job) {
		if end := a.CreatedAt.Add(SubmitWindow); end.After(now) && !a.CreatedAt.After(now) {
			asked = append(asked, end)
		}
	}
	for a := range w.attempts() {
		consider(a)
	}
	for i := range w.Over {
		consider(&w.Over[i])
	}
	if len(asked) < SubmitMost {
		return SubmitMost - len(asked), time.Time{}
	}
	slices.SortFunc(asked, time.Time.Compare)
	return 0, asked[len(asked)-SubmitMost]
}

// soonest returns the earlier of two times; a zero time means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
