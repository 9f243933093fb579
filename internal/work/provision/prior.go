package provision

// Waits in queues in which no pilot has run. A plan must not treat them as zero, or its confidence would be 1. It
// assumes, and names, the first of these that exists: the waits in other queues of the site, the waits at the owner's
// other sites of that batch system, and the wait that follows from the present state of the queue.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A Standing is the state of a queue from which waits are derived.
type Standing struct {
	Running, Waiting int       // jobs
	Wait             plan.Wait // until a pilot fits beside these jobs
}

// StandingOf returns the state of a backlog, as the batch system's policy plans it: all jobs take the time that they
// requested, and no others arrive. A pilot that never fits beside them waits until the last of them has ended.
func StandingOf(b corral.Backlog) Standing {
	line := queue.Of(b)
	room := queue.Unplanned(line).From(line.Now())
	return Standing{len(b.Running), len(b.Waiting), func(shape plan.Shape) time.Duration {
		wait, ok := room.Fit(0, shape.Walltime, shape.Hosts*shape.Host.CPUs)
		if !ok {
			for at := range room.Steps() {
				wait = at
			}
		}
		return wait.Round(time.Millisecond)
	}}
}

// unseen reports whether no wait at a site with queues is known.
func (f Facts) unseen() bool { return !f.Site.System().Queueless && len(f.Waits) == 0 }

// Unseen returns the names of the queues whose present state is the only evidence for their waits.
func (f Facts) Unseen() (all []string) {
	if f.unseen() && len(f.Others) == 0 {
		for _, q := range f.queues() {
			all = append(all, q.Name)
		}
	}
	return all
}

// fewerWaits is the number of the latest waits at each of the other sites.
const fewerWaits = 500

// elsewhere returns, in the order of submission, the waits at the other sites of a site's owner with the same batch
// system.
func elsewhere(tx *store.Tx, site corral.Site) (all []corral.Wait, err error) {
	sites, err := tx.Sites(store.Filter{})
	for _, s := range sites {
		if err != nil || s.ID == site.ID || s.Owner != site.Owner || s.Batch != site.Batch {
			continue
		}
		var waits []corral.Wait
		waits, err = tx.Waits(store.WaitFilter{Site: s.ID, Last: fewerWaits})
		all = append(all, waits...)
	}
	slices.SortStableFunc(all, func(a, b corral.Wait) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	return all, err
}

// Priors describes the assumed waits in queues in which no pilot has run.
func Priors(facts []Facts) (said []string) {
	for _, f := range facts {
		for _, q := range f.queues() {
			if len(queueing.In(q.Name, f.Waits)) > 0 || f.Site.System().Queueless || !f.open() {
				continue
			}
			where := "wait at " + f.Site.Name
			if q.Name != "" {
				where = fmt.Sprintf("wait in queue %s at %s", q.Name, f.Site.Name)
			}
			_, from := f.prior(q.Name, Caution{}, time.Time{})
			said = append(said, where+": no pilot has run there; "+from)
		}
	}
	return said
}

// prior returns the assumed waits in a queue in which no pilot has run, nil if nothing is known, and their basis.
func (f Facts) prior(name string, c Caution, now time.Time) (plan.Waits, string) {
	switch stands, looked := f.Stands[name]; {
	case len(f.Waits) > 0:
		return waitsOf(f.Waits, c, now), "assumed from " + counted(len(f.Waits), "wait") + " in the site's other queues"
	case len(f.Others) > 0:
		var sites []string
		for _, w := range f.Others {
			sites = append(sites, w.Site)
		}
		slices.Sort(sites)
		return waitsOf(f.Others, c, now), fmt.Sprintf("assumed from %s at %s", counted(len(f.Others), "wait"),
			strings.Join(slices.Compact(sites), ", "))
	case looked:
		return func(shape plan.Shape, _ float64) time.Duration { return stands.Wait(shape) }, fmt.Sprintf(
			"assumed from the queue, with %d running and %d waiting jobs", stands.Running, stands.Waiting)
	}
	return nil, "its queue cannot be seen either: none is assumed, and a confidence leaves it out"
}
