package reconcile

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// A Change is something that happens to a World: an action of Decide that records something, or an event. Resume, Renew
// and Sweep are no changes: they act at the site, and what comes of them is an event.
type Change interface {
	// apply looks up what the change is about, asks the rules of package corral, and only then changes the world.
	apply(w *World, now time.Time) ([]corral.Entry, error)
}

// Events that are no actions: what users ask for, and what sites and pilots say.
type (
	// CreateGlidein records a request. The glidein's ID is the caller's, greater than those before it.
	CreateGlidein struct {
		Glidein corral.Glidein
		Cluster corral.Cluster
	}

	// MoveJob is an event of a job's life, as Events makes them.
	MoveJob struct {
		Job   corral.JobID
		Event corral.JobEvent
	}

	// LeaseJob asks for an attempt's lease on behalf of a pilot process.
	LeaseJob struct {
		Job             corral.JobID
		Holder, Session string
	}

	// NoteWorkers says how many workers of an attempt are registered.
	NoteWorkers struct {
		Job     corral.JobID
		Workers int
	}

	// NoteWaits says why a job waits in its site's queue.
	NoteWaits struct {
		Job corral.JobID
		Why string
	}

	// LoseHost says that an attempt goes on without one of its hosts.
	LoseHost struct {
		Job  corral.JobID
		Host corral.LostHost
	}
)

// Apply changes the world as the store changes its rows, by the same rules of package corral, and returns the entries
// that the store would write into the histories, in its order; they lack an actor. A change that is refused changes
// nothing and returns the store's error. What has left the world (see World) is NotFound, although the store still
// has it.
//
// So a simulation runs production's rules: Decide returns actions, Apply records them, a model of the site answers
// with events. Times are whole milliseconds, as in the store. A change costs O(log n) in the number of glideins and
// attempts; only a move of the site, which settles all its glideins, costs O(n).
//
// Apply changes the slices of the world in place: a copy of the struct is not a second world.
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

// The changes. Each looks up what it is about, asks one rule of a noun, and changes the world only if the rule agrees:
// a change that is refused leaves nothing half done. The order of the entries is the store's.
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

// intend asks the rule of the site for another job: for an attempt that of its glidein and the site's load, for a setup
// or cleanup job that of the jobs that the site has had.
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

// ask notes that an attempt is asked to drain or to end; a gives the reason.
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

// changeGlidein puts what a rule makes of a glidein in its place, and settles it if that changed it.
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

// moveTo has the site as it was moved, and settles its glideins.
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
		case j.Kind == corral.PilotJob: // its glidein has left, so it has ended
			return j.LoseHost(e.Host, 0, now)
		}
		return j, nil, err
	})
	return entries, err
}

// settled changes a job by a rule. If the rule has an entry, something of the job has changed, and what follows from
// that is brought up to date: the glidein's state, or what the site says of its setup or cleanup job.
func (w *World) settled(id corral.JobID, now time.Time, rule jobRule) ([]corral.Entry, error) {
	j, entries, err := w.change(id, rule)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	w.hold(now)
	return append(entries, w.settleOwner(j, now)...), nil
}

// settleOwner settles the glidein that j is an attempt of, or has the site say what becomes of j.
func (w *World) settleOwner(j corral.Job, now time.Time) []corral.Entry {
	if j.Kind != corral.PilotJob {
		w.Site, _ = w.Site.Explain(j, now)
		return nil
	}
	g, err := w.glidein(j.Glidein)
	if err != nil {
		return nil // it is over, and has left
	}
	return w.settle(g, w.Site.Lack(), now)
}

// settle is the one place that changes a glidein's state. A glidein that is over gives its attempts back at once; it
// itself leaves later, with many others (tidy).
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

// hold brings Held to now. Held follows from the last attempts that told something of the site, so it is worked out
// again whenever one of them ends, and when time has passed: at an earlier now fewer of them had ended.
func (w *World) hold(now time.Time) {
	if w.index.held.Equal(now) {
		return
	}
	w.index.held = now
	recent := make([]corral.Job, 0, corral.HoldHistory)
	for i := len(w.Told) - 1; i >= 0 && len(recent) < corral.HoldHistory; i-- {
		if !w.Told[i].EndedAt.After(now) { // what has yet to end, by a clock that was set back since, says nothing
			recent = append(recent, w.Told[i])
		}
	}
	w.Held = corral.NewHold(recent)
}
