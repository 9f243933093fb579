package revision

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// idle returns the pilots that have been idle for a while and for which no tasks are expected. Holding them is a waste,
// so they are released without waiting for the effects of earlier decisions.
func idle(o *outlook, closed map[int]bool) map[int]bool {
	all := map[int]bool{}
	for i, q := range o.Pilots {
		if workless(o, i, closed) && q.Phase == Working && q.Idle > max(time.Second, o.Problem.Cluster.Hop) {
			all[i] = true
		}
	}
	return all
}

// unneeded returns the pilots that have not started and are not needed: even without them and the idle pilots, the work
// still ends in time.
func unneeded(o *outlook, idle, closed map[int]bool) map[int]bool {
	all := map[int]bool{}
	for i, q := range o.Pilots {
		if workless(o, i, closed) && (q.Phase == Planned || q.Phase == Queued) {
			all[i] = true
		}
	}
	gone := maps.Clone(all)
	maps.Copy(gone, idle)
	spare(o, gone)
	for i := range idle {
		delete(gone, i)
	}
	return gone
}

// workless reports whether a pilot has no task and no task is expected for it. A static pilot stays nevertheless.
func workless(o *outlook, i int, closed map[int]bool) bool {
	return !o.Goal.Static && o.ends[i] == 0 && o.running[i] == 0 && !closed[i]
}

// release releases the pilots that are not needed.
func release(o *outlook, d *Decision, idle, unneeded map[int]bool) {
	all := maps.Clone(idle)
	maps.Copy(all, unneeded)
	if len(all) == 0 {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(all)) {
		why := Unneeded
		if idle[i] {
			why = Workless
		}
		d.Drop = append(d.Drop, Drop{Pilot: o.Pilots[i].Number, Idle: idle[i], Why: why})
	}
	d.Predicted = prediction(o)
	d.say("ahead: %d idle pilot(s) have no more tasks, %d more are not needed; it ends after %s", len(idle),
		len(unneeded), brief(d.Predicted.End))
}

// spare adds unsubmitted pilots to dropped, the last ones first, if the result is cheaper and ends no later than the
// plan predicted. Time ahead of the plan is traded for money, but not the plan's slack, which covers errors.
func spare(o *outlook, dropped map[int]bool) {
	if o.Goal.Objective == plan.Makespan || o.Goal.Static {
		return
	}
	for tries, i := 0, len(o.Pilots)-1; i >= 0 && tries < 10 && !hurried(o.View); i-- {
		if o.Pilots[i].Phase != Planned || dropped[i] || time.Duration(o.Pilots[i].Submit) <= o.Now {
			continue
		}
		tries++
		before := o.expected()
		dropped[i] = true
		o.look(o.without(dropped))
		if o.Left > 0 || o.Now+o.End > o.Promise || o.expected() >= before-before/100 {
			delete(dropped, i)
			o.look(o.without(dropped))
			break
		}
	}
}
