package revision

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// price returns the cost of holding pilot q.
func price(t plan.Tariff, q plan.Pilot) cost.Money {
	_, money := t.Bill(q)
	return money
}

// exposed returns the maximum total cost by the time the next decision takes effect: it assumes that started pilots
// continue to be held, and that requested pilots and those in more start now. gone selects the pilots that are released
// now, by their index in Pilots, followed by Beside.
func (v View) exposed(gone map[int]bool, more ...Pilot) (sum cost.Money) {
	next := v.Period + v.Grace
	for i, q := range slices.Concat(v.Pilots, v.Beside, more) {
		ends := q.Cancelled || gone[i]
		switch {
		case q.started() && ends:
			sum = sum.Plus(price(q.Tariff, q.spent(v.Now+v.Grace)))
		case q.started():
			sum = sum.Plus(price(q.Tariff, q.spent(v.Now+next)))
		case ends, q.Phase == Gone, q.Phase == Leaving, q.Phase == Planned && time.Duration(q.Submit) > v.Now+next:
		default:
			sum = sum.Plus(price(q.Tariff, q.heldFor(next)))
		}
	}
	return sum
}

// expected returns the expected final cost if each pilot leaves after its last task. Started pilots without a task, and
// those of Beside, are expected to be released soon, and are charged for Grace from now on.
func (o *outlook) expected() (sum cost.Money) {
	for i, q := range o.Pilots {
		switch {
		case q.started():
			sum = sum.Plus(price(q.Tariff, q.spent(max(o.ends[i]+o.Problem.Cluster.Leave, o.Now+o.Grace))))
		case q.Phase == Planned || q.Phase == Queued:
			if o.ends[i] > 0 {
				began := max(time.Duration(q.Submit)+q.Wait, o.Now)
				sum = sum.Plus(price(q.Tariff, q.heldFor(max(0, o.ends[i]-began)+o.Problem.Cluster.Leave)))
			}
		}
	}
	for _, q := range o.Beside {
		if q.started() {
			sum = sum.Plus(price(q.Tariff, q.spent(o.Now+o.Grace)))
		}
	}
	return sum
}

// Spent returns the cost of the pilots so far.
func Spent(v View) (sum cost.Money) {
	for _, q := range slices.Concat(v.Pilots, v.Beside) {
		if q.started() {
			sum = sum.Plus(price(q.Tariff, q.spent(v.Now)))
		}
	}
	return sum
}

// Guard returns the pilots that have to end now so that the budget is not exceeded before the next decision takes
// effect, whatever their tasks.
func Guard(v View) []Drop { return (&outlook{View: v}).cuts() }

// cuts returns the pilots that have to end now so that the budget is not exceeded before the next decision takes
// effect: those that lose the least work for the money that they save. It is the greedy algorithm for covering
// knapsacks: pilots that turn out to be unnecessary, because later ones save enough, stay.
func (o *outlook) cuts() (all []Drop) {
	if o.Goal.Budget == nil {
		return nil
	}
	gone := map[int]bool{}
	over := func() bool { return o.exposed(gone) > o.Goal.Budget.Money }
	if !over() {
		return nil
	}
	var ended []ending
	for _, e := range o.endings() {
		if over() {
			e.end(gone, true)
			ended = append(ended, e)
		}
	}
	slices.SortStableFunc(ended, func(a, b ending) int { return cmp.Compare(b.lost, a.lost) })
	for _, e := range ended {
		if e.end(gone, false); over() {
			e.end(gone, true)
			all = append(all, Drop{Pilot: e.number, Cancel: true, Why: Budget})
		}
	}
	return all
}

// An ending is the end of a pilot of the plan with all its attempts, which cannot be ended separately.
type ending struct {
	number int
	of     []int // indices in Pilots, followed by Beside
	held   bool  // one of the attempts holds its hosts
	lost   time.Duration
	saved  cost.Money
}

// end marks the attempts as released, or as not released.
func (e ending) end(gone map[int]bool, yes bool) {
	for _, i := range e.of {
		gone[i] = yes
	}
}

// endings lists the pilots whose end reduces the exposed cost. Those that hold no hosts come first, then those that
// lose the least run time of tasks for the cost that they save, then those that save most, then the last ones.
func (o *outlook) endings() (all []ending) {
	index := map[int]int{} // :: number → index in all
	for i, q := range slices.Concat(o.Pilots, o.Beside) {
		if q.Phase == Gone {
			continue
		}
		k, known := index[q.Number]
		if !known {
			k = len(all)
			index[q.Number], all = k, append(all, ending{number: q.Number})
		}
		all[k].of, all[k].held = append(all[k].of, i), all[k].held || q.started()
	}
	for _, t := range o.Tasks {
		if t.State == corral.TaskRunning && t.Pilot >= 0 && t.Pilot < len(o.Pilots) {
			if k, known := index[o.Pilots[t.Pilot].Number]; known {
				all[k].lost += max(0, o.Now-t.Since)
			}
		}
	}
	before := o.exposed(nil)
	for k, e := range all {
		gone := map[int]bool{}
		e.end(gone, true)
		all[k].saved = before - o.exposed(gone)
	}
	all = slices.DeleteFunc(all, func(e ending) bool { return e.saved <= 0 })
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b ending) int {
		if a.held != b.held && b.held {
			return -1
		} else if a.held != b.held {
			return 1
		}
		return cmp.Or(cmp.Compare(a.lost.Seconds()/float64(a.saved), b.lost.Seconds()/float64(b.saved)),
			cmp.Compare(b.saved, a.saved))
	})
	return all
}

// drains returns the pilots that must start no more tasks because the budget does not cover the remaining work, but
// only their running tasks.
func (o *outlook) drains() (all []Drop) {
	if o.Goal.Budget == nil || o.expected() <= o.Goal.Budget.Money {
		return nil
	}
	rest := affordable(o) - o.Period - o.Grace
	for k, p := range o.left.Present {
		i := o.pilots[k]
		if i < 0 || o.Pilots[i].Phase != Working && o.Pilots[i].Phase != Booting {
			continue
		}
		var longest time.Duration
		for _, r := range p.Running {
			longest = max(longest, o.left.Work.Task(r.Task).Runtime)
		}
		if rest <= longest {
			all = append(all, Drop{Pilot: o.Pilots[i].Number, Why: Budget})
		}
	}
	return all
}

// affordable returns how long all pilots that hold hosts can be held within the budget, to a tenth of a second, at most
// a day.
func affordable(o *outlook) time.Duration {
	cost := func(d time.Duration) (sum cost.Money) {
		for _, q := range slices.Concat(o.Pilots, o.Beside) {
			if q.started() {
				sum = sum.Plus(price(q.Tariff, q.spent(o.Now+d)))
			}
		}
		return sum
	}
	low, high := time.Duration(0), 24*time.Hour
	for high-low > 100*time.Millisecond {
		if mid := (low + high) / 2; cost(mid) <= o.Goal.Budget.Money {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
