package reconcile

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// A Change is a change of a World: an action of Decide that records something, or an event. Resume, Renew and Sweep are
// not changes, because they act at the site and their results are events.
type Change interface {
	// apply looks up the object of the change, consults the rules of package corral, and only then changes the world.
	apply(w *World, now time.Time) ([]corral.Entry, error)
}

// Events that are not actions: requests of users, and reports of sites and pilots.
type (
	// CreateGlidein records a request for a glidein. The caller sets the glidein's ID, which must be greater than all
	// earlier IDs.
	CreateGlidein struct {
		Glidein corral.Glidein
		Cluster corral.Cluster
	}

	// MoveJob is an event in the life of a job, as created by Events.
	MoveJob struct {
		Job   corral.JobID
		Event corral.JobEvent
	}

	// LeaseJob requests an attempt's lease on behalf of a pilot process.
	LeaseJob struct {
		Job             corral.JobID
		Holder, Session string
	}

	// NoteWorkers reports how many workers of an attempt are registered.
	NoteWorkers struct {
		Job     corral.JobID
		Workers int
	}

	// NoteWaits reports why a job waits in its site's queue.
	NoteWaits struct {
		Job corral.JobID
		Why string
	}

	// LoseHost reports that an attempt continues without one of its hosts.
	LoseHost struct {
		Job  corral.JobID
		Host corral.LostHost
	}
)

// Apply changes the world as the store changes its rows, by the same rules of package corral. It returns the entries
// that the store would write into the histories, in the store's order but without an actor. If a change is refused,
// Apply changes nothing and returns the same error as the store. Objects that have left the world (see World) are
// NotFound, although the store still contains them.
//
// So a simulation runs the rules of production: Decide returns actions, Apply records them, and a model of the site
// responds with events. Times are whole milliseconds, as in the store. A change costs O(log n) in the number of
// glideins and attempts; only a move of the site, which settles all its glideins, costs O(n).
//
// Apply changes the slices of the world in place, so a copy of the struct is not an independent world.
func (w *World) Apply(c Change, now time.Time) ([]corral.Entry, error) {
	if w.index == nil {
		w.index = newIndex(*w)
	}
	w.hold(now)
	entries, err := c.apply(w, now)
	for i := range entries {
		entries[i].At = now
	}
	w.hold(now)
	w.tidy()
	return entries, err
}

// The methods below apply the changes. Each method looks up the object of the change, consults one rule of package
// corral, and changes the world only if the rule allows the change, so that a refused change is never applied in part.
// The entries are in the same order as in the store.
func (a Submit) apply(w *World, now time.Time) ([]corral.Entry, error) {
	site, entries := w.Site, []corral.Entry(nil)
	if a.Move != "" {
		var err error
		if site, entries, err = site.Apply(a.Move, a.Reason, now); err != nil {
			return nil, err
		}
	}
	j := corral.Job{Kind: a.Kind, Site: site.ID, Glidein: a.Glidein, Package: a.Package, Tag: a.Tag}
	j, err := w.intend(site, j, now)
	if err != nil {
		return nil, err
	}
	if a.Move != "" {
		entries = append(entries, w.moveTo(site, now)...)
	}
	j.ID = a.ID
	w.add(j)
	entries = append(entries, corral.Created(corral.ObjectJob, int64(j.ID), string(j.State)))
	return append(entries, w.settleOwner(j, now)...), nil
}

// intend consults the site's rule for another job: for an attempt, the rule that considers its glidein and the site's
// load; for a setup or cleanup job, the rule that considers the site's earlier jobs.
func (w *World) intend(site corral.Site, j corral.Job, now time.Time) (corral.Job, error) {
	if j.Kind != corral.PilotJob {
		return site.NewSiteJob(w.Jobs, j, now)
	}
	g, err := w.glidein(j.Glidein)
	if err != nil {
		return j, err
	}
	return site.NewAttempt(*g, w.index.load, j, now)
}

func (a Drain) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.ask(a.Job.ID, corral.AskDrain, a, now)
}

func (a Cancel) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.ask(a.Job.ID, corral.AskCancel, a, now)
}

// ask records a request to drain or end an attempt; the action a provides the reason.
func (w *World) ask(id corral.JobID, ask corral.Ask, a Action, now time.Time) ([]corral.Entry, error) {
	return w.settled(id, now, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.Ask(ask, a.Why(), now)
	})
}

func (a AskGlidein) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.changeGlidein(a.Glidein, now, func(g corral.Glidein) (corral.Glidein, []corral.Entry, error) {
		return g.Ask(a.Ask, a.Reason, now)
	})
}

func (a Retime) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.changeGlidein(a.Glidein, now, func(g corral.Glidein) (corral.Glidein, []corral.Entry, error) {
		return g.Retime(a.At, a.Reason, now)
	})
}

// changeGlidein replaces a glidein by the result of a rule, and settles it if the rule changed it.
func (w *World) changeGlidein(
	id corral.GlideinID, now time.Time, rule func(corral.Glidein) (corral.Glidein, []corral.Entry, error),
) ([]corral.Entry, error) {
	g, err := w.glidein(id)
	if err != nil {
		return nil, err
	}
	changed, entries, err := rule(*g)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	*g = changed
	return append(entries, w.settle(g, w.Site.Lack(), now)...), nil
}

func (a Settle) apply(w *World, now time.Time) ([]corral.Entry, error) {
	g, err := w.glidein(a.Glidein)
	if err != nil {
		return nil, err
	}
	return w.settle(g, cmp.Or(a.Lack, w.Site.Lack()), now), nil
}

func (a MoveSite) apply(w *World, now time.Time) ([]corral.Entry, error) {
	site, entries, err := w.Site.Apply(a.Move, a.Reason, now)
	if err != nil {
		return nil, err
	}
	return append(entries, w.moveTo(site, now)...), nil
}

// moveTo stores the moved site and settles its glideins.
func (w *World) moveTo(site corral.Site, now time.Time) []corral.Entry {
	w.Site = site
	var entries []corral.Entry
	for i := range w.Glideins {
		if g := &w.Glideins[i]; !g.State.Terminal() {
			entries = append(entries, w.settle(g, site.Lack(), now)...)
		}
	}
	return entries
}

func (e CreateGlidein) apply(w *World, now time.Time) ([]corral.Entry, error) {
	g, err := w.Site.NewGlidein(e.Cluster, e.Glidein, now)
	if err != nil {
		return nil, err
	}
	if n := len(w.Glideins); n > 0 && w.Glideins[n-1].ID >= g.ID {
		return nil, corral.Errorf(corral.Internal, "glidein %d follows glidein %d", g.ID, w.Glideins[n-1].ID)
	}
	w.Glideins = append(w.Glideins, g)
	entries := []corral.Entry{corral.Created(corral.ObjectGlidein, int64(g.ID), string(g.State))}
	return append(entries, w.settle(&w.Glideins[len(w.Glideins)-1], corral.Lack{}, now)...), nil
}

func (e MoveJob) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.settled(e.Job, now, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.Apply(e.Event, now)
	})
}

func (e LeaseJob) apply(w *World, now time.Time) ([]corral.Entry, error) {
	return w.settled(e.Job, now, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.Lease(e.Holder, e.Session, now)
	})
}

func (e NoteWorkers) apply(w *World, now time.Time) ([]corral.Entry, error) {
	_, entries, err := w.change(e.Job, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.NoteWorkers(e.Workers, now)
	})
	return entries, err
}

func (e NoteWaits) apply(w *World, now time.Time) ([]corral.Entry, error) {
	j, err := w.job(e.Job)
	if err != nil {
		return nil, err
	}
	if noted, ok := j.NoteWaits(e.Why, now); ok {
		*j = noted
		w.Site, _ = w.Site.Explain(noted, now)
	}
	return nil, nil
}

func (e LoseHost) apply(w *World, now time.Time) ([]corral.Entry, error) {
	_, entries, err := w.change(e.Job, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		g, err := w.glidein(j.Glidein)
		switch {
		case err == nil:
			return j.LoseHost(e.Host, g.Hosts, now)
		case j.Kind == corral.PilotJob: // its glidein is no longer in the world, so the attempt has ended
			return j.LoseHost(e.Host, 0, now)
		}
		return j, nil, err
	})
	return entries, err
}

// settled changes a job by a rule. If the rule returns an entry, the job has changed, and settled updates the state
// that depends on the job: the glidein's state, or the site's explanation of its setup or cleanup job.
func (w *World) settled(id corral.JobID, now time.Time, rule jobRule) ([]corral.Entry, error) {
	j, entries, err := w.change(id, rule)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	w.hold(now)
	return append(entries, w.settleOwner(j, now)...), nil
}

// settleOwner settles the glidein of attempt j, or updates the site's explanation if j is a setup or cleanup job.
func (w *World) settleOwner(j corral.Job, now time.Time) []corral.Entry {
	if j.Kind != corral.PilotJob {
		w.Site, _ = w.Site.Explain(j, now)
		return nil
	}
	g, err := w.glidein(j.Glidein)
	if err != nil {
		return nil // the glidein has ended and left the world
	}
	return w.settle(g, w.Site.Lack(), now)
}

// settle is the only function that changes a glidein's state. The attempts of a glidein that has ended are dropped at
// once; the glidein itself leaves the world later, together with many others (tidy).
func (w *World) settle(g *corral.Glidein, lack corral.Lack, now time.Time) []corral.Entry {
	settled, entries := g.Settle(w.Site.State, w.Held, lack, now)
	*g = settled
	if g.State.Terminal() {
		for _, a := range g.Attempts {
			delete(w.index.owners, a.ID)
		}
		g.Attempts = nil
		w.index.over++
	}
	return entries
}

// hold updates Held to now. Held is derived from the last attempts that provided evidence about the site, so it is
// recomputed whenever such an attempt ends, and when time has passed, because fewer of these attempts had ended at an
// earlier now.
func (w *World) hold(now time.Time) {
	if w.index.held.Equal(now) {
		return
	}
	w.index.held = now
	recent := make([]corral.Job, 0, corral.HoldHistory)
	for i := len(w.Told) - 1; i >= 0 && len(recent) < corral.HoldHistory; i-- {
		if !w.Told[i].EndedAt.After(now) { // end times in the future, after a clock was set back, are ignored
			recent = append(recent, w.Told[i])
		}
	}
	w.Held = corral.NewHold(recent)
}
