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
// effect: those with the smallest loss first.
func (o *outlook) cuts() (all []Drop) {
	if o.Goal.Budget == nil {
		return nil
	}
	pilots := slices.Concat(o.Pilots, o.Beside)
	order := byLoss(o, pilots)
	gone := map[int]bool{}
	for len(order) > 0 && o.exposed(gone) > o.Goal.Budget.Money {
		i := order[0]
		order = order[1:]
		if !helps(o, gone, i) {
			continue
		}
		gone[i] = true
		all = append(all, Drop{Pilot: pilots[i].Number, Cancel: true, Why: Budget})
	}
	return all
}

// helps reports whether releasing a pilot reduces the exposed cost.
func helps(o *outlook, gone map[int]bool, i int) bool {
	before := o.exposed(gone)
	gone[i] = true
	after := o.exposed(gone)
	delete(gone, i)
	return after < before
}

// byLoss lists the pilots that may be released in ascending order of the loss: first those that have not started, the
// last ones first; then those whose running tasks have run for the shortest time.
func byLoss(o *outlook, pilots []Pilot) (all []int) {
	behind := make([]time.Duration, len(pilots))
	for _, t := range o.Tasks {
		if t.State == corral.TaskRunning && t.Pilot >= 0 && t.Pilot < len(o.Pilots) {
			behind[t.Pilot] += max(0, o.Now-t.Since)
		}
	}
	for i, q := range pilots {
		if q.Phase != Gone {
			all = append(all, i)
		}
	}
	held := func(i int) int {
		if pilots[i].started() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(held(a)-held(b), cmp.Compare(behind[a], behind[b]), b-a)
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
