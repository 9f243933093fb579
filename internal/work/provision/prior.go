package provision

// Waits in queues in which no pilot has run. A plan must not treat them as zero, or its confidence would be 1. It
// assumes, and names, the first of these that exists: the waits in other queues of the site, the waits at the owner's
// other sites of that batch system, the wait that follows from the present state of the queue, and the wait that the
// batch system predicts.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
)

// A Standing is the state of a queue from which waits are derived.
type Standing struct {
	Wait  plan.Wait // until a pilot starts
	Basis string    // for the plan: where Wait is from
}

// StandingOf returns the state of a backlog, as the batch system's policy plans it: all jobs take the time that they
// requested, and no others arrive. A pilot that never fits beside them waits until the last of them has ended.
func StandingOf(b corral.Backlog) Standing {
	line := queuemodel.Of(b)
	basis := fmt.Sprintf("assumed from the queue, with %d running and %d waiting jobs", len(b.Running), len(b.Waiting))
	return Standing{Basis: basis, Wait: func(shape plan.Shape) time.Duration {
		memory := shape.Host.MemoryMiB
		if memory >= plan.Unlimited {
			memory = 0
		}
		wait, ok := line.Start(0, queuemodel.Request{Hosts: shape.Hosts, CPUs: shape.Host.CPUs, MemoryMiB: memory,
			Walltime: shape.Walltime})
		if !ok {
			for at := range line.Room().Steps() {
				wait = at
			}
		}
		return wait.Round(time.Millisecond)
	}}
}

// Tried returns the shapes of pilots whose waits the batch system is asked to predict: one node and, if pilots may have
// more, eight, for each class of walltimes.
func Tried(q corral.SiteQueue) (all []corral.Shape) {
	nodes := []int{1}
	if most := min(request.OrUnlimited(q.MaxNodes), request.OrUnlimited(q.Nodes), 8); most > 1 {
		nodes = append(nodes, most)
	}
	for _, n := range nodes {
		for _, walltime := range append(slices.Clone(corral.WalltimeClasses), corral.Seconds(24*time.Hour)) {
			if q.MaxWalltime > 0 && walltime > q.MaxWalltime {
				walltime = q.MaxWalltime
			}
			shape := corral.Shape{Hosts: n, CPUs: q.CPUs, Walltime: walltime}
			if !slices.Contains(all, shape) {
				all = append(all, shape)
			}
		}
	}
	return all
}

// Predicted returns a queue's state by predictions for some shapes. Another shape waits as long as the smallest of them
// that is at least as large in nodes and in walltime; if there is none, it waits as long as any of them.
func Predicted(shapes []corral.Shape, waits []corral.Seconds, source string) Standing {
	return Standing{Basis: "predicted by " + source, Wait: func(shape plan.Shape) time.Duration {
		for i, s := range shapes {
			if s.Hosts >= shape.Hosts && time.Duration(s.Walltime) >= shape.Walltime {
				return time.Duration(waits[i])
			}
		}
		return time.Duration(slices.Max(waits))
	}}
}

// unseen reports whether no wait at a site with queues is known.
func (f Facts) unseen() bool { return !f.Site.System().Queueless && len(f.Waits) == 0 }

// Unseen returns the queues whose present state is the only evidence for their waits.
func (f Facts) Unseen() []corral.SiteQueue {
	if f.unseen() && len(f.Others) == 0 {
		return f.queues()
	}
	return nil
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
		return func(shape plan.Shape, _ float64) time.Duration { return stands.Wait(shape) }, stands.Basis
	}
	return nil, "its queue cannot be seen either: none is assumed, and a confidence leaves it out"
}
