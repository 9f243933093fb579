package revision

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// Of a budget one part in so many is kept for what pilots are held beyond what they are expected to: until it shows
// that they are idle, and until an order has reached them.
const budgetReserve = 33

// mostSparing is how many pilots are looked at, at most, in one decision that saves.
const mostSparing = 16

// save lets pilots go without which what is left becomes cheaper and is still done in time, as long as all of them
// together are expected to cost more than the budget. Fewer pilots wait less for tasks, at the price of time; and the
// budget is kept whatever happens: without that, what it does not suffice for would be left undone in the end.
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
		d.say("%d pilot(s) take no more tasks: with all of them it would cost %s of the budget of %s, without them "+
			"%s; it ends after %s", saved, before, *o.Goal.Budget, d.Predicted.Cost, brief(d.Predicted.End))
	}
}

// cheapest returns the pilot without which what is left costs least, of those without which it is cheaper by more than
// a hundredth, and by more than a hop of all pilots costs, and still done in time; negative: there is none. What the
// cluster has meant for the pilot needs another hop, while others may wait for it. Of pilots that are alike one is
// tried, so many at most. It says how many were.
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

// hop is what the pilots that have started cost during one.
func hop(o *outlook) (sum cost.Money) {
	for _, q := range o.Pilots {
		if q.started() {
			sum = sum.Plus(price(q.Tariff, q.spent(o.Now+o.Problem.Cluster.Hop)) - price(q.Tariff, q.spent(o.Now)))
		}
	}
	return sum
}

// A kin is what pilots have in common of which it does not matter which one goes.
type kin struct {
	site, queue string
	hosts, cpus int
	phase       Phase
	busy        bool
	price       cost.Money
}

// kinOf is the kin of a pilot; ok is false if it takes no tasks any more.
func kinOf(o *outlook, i int) (k kin, ok bool) {
	q := o.Pilots[i]
	return kin{q.Site, q.Queue, q.Hosts, q.CPUs, q.Phase, o.running[i] > 0, price(q.Tariff, q.heldFor(time.Hour))},
		q.Phase <= Working
}

// inTime reports whether the end that is expected leaves what is kept of the time until the deadline, if there is one.
func inTime(o *outlook) bool { return o.Goal.Deadline == 0 || o.Now+o.End <= o.target() }
