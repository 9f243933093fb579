package outage

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A world is what is alive of all owners' glideins and runs. Nothing in it is looked up by name.
type world struct {
	glideins []corral.Glidein
	runs     []corral.Run
}

// read reads all that is alive: whose it is matters for nothing here, since each entry is of the object itself.
func read(tx *store.WholeTx) (w world, err error) {
	if w.glideins, err = tx.Glideins(store.GlideinFilter{Live: true, InBrief: true}); err != nil {
		return w, err
	}
	w.runs, err = tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning}})
	return w, err
}

// attempts are those that are alive.
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

// live reports whether an attempt of a glidein is alive.
func live(g corral.Glidein) bool { return len(world{glideins: []corral.Glidein{g}}.attempts()) > 0 }

// glideinOf is what the store knows a glidein as.
func glideinOf(g corral.Glidein) store.Subject {
	return store.Subject{Object: corral.ObjectGlidein, ID: int64(g.ID)}
}

// runOf is what the store knows a run as.
func runOf(r corral.Run) store.Subject {
	return store.Subject{Object: corral.ObjectRun, ID: int64(r.ID)}
}

// subjects are all that may have something said of them.
func (w world) subjects() (all []store.Subject) {
	for _, g := range w.glideins {
		all = append(all, glideinOf(g))
	}
	for _, r := range w.runs {
		all = append(all, runOf(r))
	}
	return all
}

// musterOf returns which workers of its cluster a glidein has. There may be more if the pilot of one of its attempts
// has lost its connection.
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

// A tally adds up the glideins of a cluster, for its runs: they have all its workers.
type tally struct {
	corral.Outage
	connected int
}

// add adds a glidein, with its outage and the number of its workers that are connected.
func (t tally) add(o corral.Outage, connected int) tally {
	if o.Workers > 0 && (t.Workers == 0 || o.Since.Before(t.Since)) {
		t.Since = o.Since
	}
	t.Workers += o.Workers
	t.connected += connected
	t.Of = t.Workers + t.connected
	return t
}

// A turn is one look: what was and is reported, and the news for the histories.
type turn struct {
	now     time.Time
	was, is map[store.Subject]corral.Outage
	news    []entry
}

// tell notes what is to be said of an object of an owner. Its history gets an entry when that begins and when it ends.
func (t *turn) tell(owner string, of store.Subject, is corral.Outage, connected int) {
	was := t.was[of]
	if is.Workers > 0 {
		t.is[of] = is
	}
	switch {
	case was.Workers == 0 && is.Workers > 0:
		t.news = append(t.news, entry{owner, of, OutOfReach, sentence(is)})
	case was.Workers > 0 && is.Workers == 0 && connected == 0:
		t.news = append(t.news, entry{owner, of, WithinReach, "the workers that were out of reach have left"})
	case was.Workers > 0 && is.Workers == 0:
		t.news = append(t.news, entry{owner, of, WithinReach, fmt.Sprintf(
			"all %d workers are within reach again, after %s", connected, t.now.Sub(was.Since).Round(time.Second))})
	}
}
