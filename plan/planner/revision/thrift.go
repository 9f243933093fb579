package revision

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// budgetReserve is the inverse of the share of the budget that covers additional holding time: until idleness is
// noticed, and until a release takes effect.
const budgetReserve = 33

// mostSparing is the maximum number of pilots to consider in one decision.
const mostSparing = 16

// save releases pilots without which the remaining work becomes cheaper and still ends in time, as long as the expected
// cost of all pilots exceeds the budget. Fewer pilots wait less for tasks, but take more time. The budget is enforced
// in any case; without save, the work that the budget does not cover would remain undone.
func save(o *outlook, d *Decision, gone map[int]bool) {
	if o.Goal.Budget == nil || o.Left > 0 {
		return
	}
	limit := o.Goal.Budget.Money - o.Goal.Budget.Money/budgetReserve
	before, tries, saved := o.expected(), 0, 0
	for o.expected() > limit && tries < mostSparing && !hurried(o.View) {
		best, tried := cheapest(o, gone, mostSparing-tries)
		if tries += tried; best < 0 {
			break
		}
		gone[best] = true
		o.look(o.without(gone))
		d.Drop = append(d.Drop, Drop{Pilot: o.Pilots[best].Number, Why: Thrift})
		saved++
	}
	if saved > 0 {
		o.left = o.without(gone)
		d.Predicted = prediction(o)
		d.say("%d pilot(s) take no more tasks: with them it would cost %s of the budget of %s, without them "+
			"%s; it ends after %s", saved, before, *o.Goal.Budget, d.Predicted.Cost, brief(d.Predicted.End))
	}
}

// cheapest returns the pilot whose release makes the remaining work cheapest, still in time, and saves at least 1 % and
// the cost of a hop of all pilots; best is negative if there is no such pilot. The saving must cover a hop because
// tasks that are already assigned to the pilot must be reassigned, and other tasks may wait for them. Among equivalent
// pilots only one is tried. tried is the number of pilots that were tried, which most limits.
func cheapest(o *outlook, gone map[int]bool, most int) (best, tried int) {
	best, least := -1, o.expected()
	least -= max(least/100, hop(o))
	seen := map[kin]bool{}
	for i := range slices.Backward(o.Pilots) {
		k, ok := kinOf(o, i)
		if !ok || gone[i] || seen[k] || tried == most || hurried(o.View) {
			continue
		}
		seen[k] = true
		tried++
		gone[i] = true
		o.look(o.without(gone))
		if money := o.expected(); o.Left == 0 && money < least && inTime(o) {
			best, least = i, money
		}
		delete(gone, i)
	}
	o.look(o.without(gone))
	return best, tried
}

// hop returns the cost of the started pilots during one hop.
func hop(o *outlook) (sum cost.Money) {
	for _, q := range o.Pilots {
		if q.started() {
			sum = sum.Plus(price(q.Tariff, q.spent(o.Now+o.Problem.Cluster.Hop)) - price(q.Tariff, q.spent(o.Now)))
		}
	}
	return sum
}

// A kin holds the common properties of equivalent pilots, any of which may be released.
type kin struct {
	site, queue string
	hosts, cpus int
	phase       Phase
	busy        bool
	price       cost.Money
}

// kinOf returns the kin of a pilot; ok is false if the pilot takes no more tasks.
func kinOf(o *outlook, i int) (k kin, ok bool) {
	q := o.Pilots[i]
	return kin{q.Site, q.Queue, q.Hosts, q.CPUs, q.Phase, o.running[i] > 0, price(q.Tariff, q.heldFor(time.Hour))},
		q.Phase <= Working
}

// inTime reports whether the expected end leaves the reserve before the deadline, if there is one.
func inTime(o *outlook) bool { return o.Goal.Deadline == 0 || o.Now+o.End <= o.target() }
