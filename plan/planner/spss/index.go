package spss

import "time"

// trees index the machines of a plan for the search for an offer.
type trees struct {
	gaps   treap // by begin, with end and length: the gaps, and the paid time before each first task
	ends   treap // by the end of the last task, with slack and the end of the paid time
	starts treap // by the start of the first task, with slack and the negative beginning of the paid time
}

// headOf marks the entry for a machine's paid time before its first task in gaps.
const headOf = 1 << 30

// enter adds a machine to the trees, without its gaps.
func (f *fleet) enter(id int32, m *machine) {
	slack := f.slack(m)
	head := max(m.start-slack, f.Delay)
	f.trees.ends.insert(m.end, id, slack, m.end+slack)
	f.trees.starts.insert(m.start, id, slack, slack-m.start)
	if head < m.start {
		f.trees.gaps.insert(head, id|headOf, m.start, m.start-head)
	}
}

// leave removes a machine from the trees, without its gaps.
func (f *fleet) leave(id int32, m *machine) {
	f.trees.ends.remove(m.end, id)
	f.trees.starts.remove(m.start, id)
	f.trees.gaps.remove(max(m.start-f.slack(m), f.Delay), id|headOf)
}

// byTrees returns an offer as good as the best of oneByOne. It first tries offers without cost, and then offers by
// ascending number of periods: a task of q whole periods and a rest costs q periods if the rest is already paid, and
// q+1 periods on any other machine without a long idle time before the task.
func (b builder) byTrees(n need) offer {
	if n.earliest+n.takes > n.deadline {
		return b.fresh(n)
	}
	if o, ok := b.free(n); ok {
		return o
	}
	q := int64(0)
	if n.takes > 0 {
		q = int64((n.takes - 1) / b.Terms.Period)
	}
	rest := n.takes - time.Duration(q)*b.Terms.Period
	if q > 0 {
		if o, ok := b.paid(n, q, rest); ok {
			return o
		}
	}
	fresh := b.fresh(n)
	for periods := q + 1; periods <= fresh.periods; periods++ { // one, unless a new machine is billed while it boots
		if o, ok := b.paid(n, periods, 0); ok {
			return o
		}
	}
	return fresh
}

// A choice holds the earliest of several starts with which a task meets its deadline.
type choice struct {
	need
	best offer
	ok   bool
}

func (c *choice) offer(e *entry, start time.Duration) {
	if e != nil && start+c.takes <= c.deadline && (!c.ok || start < c.best.start) {
		c.best.machine, c.best.start, c.ok = e.id&^headOf, start, true
	}
}

// free finds a place in paid time.
func (b builder) free(n need) (offer, bool) {
	c := choice{need: n}
	c.offer(b.plan.trees.gaps.last(n.earliest, byA, n.earliest+n.takes), n.earliest)
	c.offer(b.plan.trees.ends.last(n.earliest, byB, n.earliest+n.takes), n.earliest)
	if !c.ok {
		if e := b.plan.trees.gaps.first(n.earliest, byB, n.takes); e != nil {
			c.offer(e, e.key)
		}
		if e := b.plan.trees.ends.first(n.earliest, byA, n.takes); e != nil {
			c.offer(e, e.key)
		}
		if e := b.plan.trees.starts.first(n.earliest+n.takes, byA, n.takes); e != nil {
			c.offer(e, e.key-n.takes)
		}
	}
	return c.best, c.ok
}

// paid finds a place that costs a number of periods on a machine with at least the given slack.
func (b builder) paid(n need, periods int64, slack time.Duration) (offer, bool) {
	c := choice{need: n, best: offer{periods: periods}}
	more := time.Duration(periods) * b.Terms.Period
	if e := b.plan.trees.ends.last(n.earliest, byB, n.earliest+n.takes-more); e != nil {
		c.offer(e, n.earliest)
	}
	if e := b.plan.trees.ends.first(n.earliest, byA, slack); e != nil {
		c.offer(e, e.key)
	}
	if slack == 0 {
		if e := b.plan.trees.starts.first(n.earliest+n.takes, byA, 0); e != nil {
			c.offer(e, max(n.earliest, e.key-b.plan.whole(n)))
		}
		return c.best, c.ok
	}
	if e := b.plan.trees.starts.first(n.earliest+n.takes, byB, -(n.earliest + more)); e != nil {
		c.offer(e, n.earliest)
	}
	if e := b.plan.trees.starts.first(n.earliest+n.takes, byA, slack); e != nil {
		c.offer(e, e.key-n.takes)
	}
	return c.best, c.ok
}
