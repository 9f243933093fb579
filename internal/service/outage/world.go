package outage

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A world holds the live glideins and runs of all owners. Nothing in it is looked up by name.
type world struct {
	glideins []corral.Glidein
	runs     []corral.Run
}

// read reads all live objects. Their owners do not matter here, because each entry refers to the object itself.
func read(tx *store.WholeTx) (w world, err error) {
	if w.glideins, err = tx.Glideins(store.GlideinFilter{Live: true, InBrief: true}); err != nil {
		return w, err
	}
	w.runs, err = tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning}})
	return w, err
}

// attempts returns the live attempts.
func (w world) attempts() map[corral.JobID]bool {
	all := map[corral.JobID]bool{}
	for _, g := range w.glideins {
		for _, j := range g.Attempts {
			if j.Live() {
				all[j.ID] = true
			}
		}
	}
	return all
}

// live reports whether a glidein has a live attempt.
func live(g corral.Glidein) bool { return len(world{glideins: []corral.Glidein{g}}.attempts()) > 0 }

// glideinOf returns a glidein's subject in the store.
func glideinOf(g corral.Glidein) store.Subject {
	return store.Subject{Object: corral.ObjectGlidein, ID: int64(g.ID)}
}

// runOf returns a run's subject in the store.
func runOf(r corral.Run) store.Subject {
	return store.Subject{Object: corral.ObjectRun, ID: int64(r.ID)}
}

// subjects returns all objects that may have outages.
func (w world) subjects() (all []store.Subject) {
	for _, g := range w.glideins {
		all = append(all, glideinOf(g))
	}
	for _, r := range w.runs {
		all = append(all, runOf(r))
	}
	return all
}

// musterOf returns a glidein's muster with those of its cluster's workers that belong to the glidein. The glidein may
// have more workers if the pilot of one of its attempts has lost its connection.
func musterOf(g corral.Glidein, workers []corral.Worker, lost map[corral.JobID]bool) (m muster) {
	own := world{glideins: []corral.Glidein{g}}.attempts()
	for _, w := range workers {
		if own[w.Attempt] {
			m.workers = append(m.workers, w)
		}
	}
	for j := range own {
		m.blind = m.blind || lost[j]
	}
	return m
}

// A tally adds up the glideins of a cluster for its runs, which use all its workers.
type tally struct {
	corral.Outage
	connected int
}

// add adds a glidein with its outage and its number of connected workers.
func (t tally) add(o corral.Outage, connected int) tally {
	if o.Workers > 0 && (t.Workers == 0 || o.Since.Before(t.Since)) {
		t.Since = o.Since
	}
	t.Workers += o.Workers
	t.connected += connected
	t.Of = t.Workers + t.connected
	return t
}

// A turn is one check: the previous and present outages, and the news for the histories.
type turn struct {
	now     time.Time
	was, is map[store.Subject]corral.Outage
	news    []entry
}

// tell records the present outage of an owner's object. Its history gets an entry when the outage begins and when it
// ends.
func (t *turn) tell(owner string, of store.Subject, is corral.Outage, connected int) {
	was := t.was[of]
	if is.Workers > 0 {
		t.is[of] = is
	}
	switch {
	case was.Workers == 0 && is.Workers > 0:
		t.news = append(t.news, entry{owner, of, OutOfReach, sentence(is)})
	case was.Workers > 0 && is.Workers == 0 && connected == 0:
		t.news = append(t.news, entry{owner, of, WithinReach, "the unreachable workers have left"})
	case was.Workers > 0 && is.Workers == 0:
		t.news = append(t.news, entry{owner, of, WithinReach, fmt.Sprintf(
			"all %d workers are within reach again, after %s", connected, t.now.Sub(was.Since).Round(time.Second))})
	}
}
