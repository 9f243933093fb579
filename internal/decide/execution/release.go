package execution

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow/dag"
)

// Release makes jobs of the loose tasks whose time has come, highest priority first, then highest upward rank first, as
// far as the limits of their categories allow. offer is the latest known; it matters only for clustered jobs, see
// split, and for tasks that were killed for their memory. A Job's Run, Dir and Mark, and what its tasks run, are for
// the caller to fill in.
func (x *Execution) Release(now time.Time, offer Offer) []Job {
	if len(x.frontier.loose) > 0 && x.plan.clustered() {
		offer = offer.distinct()
	}
	var all []released
	for more := true; more; more = len(x.frontier.loose) > 0 { // of subworkflows whose turn it was
		for _, tasks := range x.frontier.due(ToMsec(now)) {
			for _, list := range split(x, tasks, offer) {
				r := released{tasks: list, urgency: x.plan.urgency(list)}
				if category := x.plan.scope.rules(list[0]).Category; category != 0 {
					park(x.control, category, agendum{urgency: r.urgency, tasks: list})
				} else {
					all = append(all, r)
				}
			}
		}
		for category, ok := x.control.parked.next(0); ok; category, ok = x.control.parked.next(category) {
			for tasks := turn(x.control, category); tasks != nil; tasks = turn(x.control, category) {
				all = append(all, released{tasks, x.plan.urgency(tasks), enter(x, tasks, offer)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b released) int { return a.urgency.level(b.urgency) })
	var jobs []Job
	for _, r := range all {
		if r.entry == nil {
			if r.tasks = free(x.control, r.tasks); len(r.tasks) == 0 {
				continue // loose twice, and released a moment ago
			}
			r.entry = enter(x, r.tasks, offer)
		}
		jobs = append(jobs, jobOf(x, r.entry, r.tasks))
	}
	return jobs
}

// A released is the tasks of a job that is to be; entry is nil until it is made.
type released struct {
	tasks   []int32
	urgency urgency
	entry   *entry
}

// enter makes a job of tasks, which asks for no more than it can get.
func enter(x *Execution, tasks []int32, offer Offer) *entry {
	e := x.book.enter(x.book.nextSeq, x.attempts.within(x.attempts.need(tasks), tasks, offer), tasks)
	x.book.nextSeq++
	return e
}

// jobOf returns what the cluster is given of e: tasks, which are those still in it.
func jobOf(x *Execution, e *entry, tasks []int32) Job {
	j := x.attempts.job(e, tasks)
	j.Ordered = slices.ContainsFunc(tasks, func(i int32) bool { return x.frontier.state(i) == dag.Waiting })
	return j
}

// split parts tasks that are loose together into jobs: those whose first attempt it is together, the others alone, so
// that no task is repeated because of another. What together would outlive every worker, or is too large for it, is
// parted into jobs as large as some worker could take; a task that none could take goes alone. What is left of a
// cluster is parted into jobs of half that time: workers have less of it with every second that a job waits, and jobs
// that just fit would be parted again and again, until each task is alone. A task with a script to run before it, which
// is a cluster of its own, has that asked for.
func split(x *Execution, tasks []int32, offer Offer) (lists [][]int32) {
	if len(tasks) == 1 {
		i := tasks[0]
		if _, waits := x.frontier.ends[i]; waits || !x.control.idle(i) || x.control.held(i) {
			return nil
		}
		if u := x.control.units[i]; u != nil && u.stage == stagePre {
			x.control.scripts.add(i, u)
		}
		if !x.control.mayRun(i) {
			return nil
		}
		return [][]int32{tasks}
	}
	var first []int32
	for k, i := range tasks {
		_, waits := x.frontier.ends[i]
		switch {
		case waits:
		case x.attempts.tasks[i].attempt == 1:
			first = append(first, i)
		case x.control.idle(i):
			lists = append(lists, tasks[k:k+1:k+1])
		}
	}
	for first = free(x.control, first); len(first) > 0; {
		left := len(tasks) < len(x.plan.tasksOf(int(x.plan.clusterOf[first[0]])))
		n := fitting(x, first, offer, left)
		lists = append(lists, first[:n:n])
		first = first[n:]
	}
	return lists
}

// fitting returns how many of tasks, from the first on, some worker could take as one job; at least one. If they are
// not all, and are what is left of a cluster, the job takes at most half of that worker's time. Nothing is known of a
// cluster that offers nothing: it is all then.
func fitting(x *Execution, tasks []int32, offer Offer, left bool) int {
	if len(offer.Capacities) == 0 || offer.takes(x.attempts.need(tasks)) {
		return len(tasks)
	}
	n := x.attempts.need(tasks[:1])
	for k := 1; k < len(tasks); k++ {
		n = n.and(x.attempts.need(tasks[k : k+1]))
		asked := n
		if left {
			asked.time *= 2
		}
		if !offer.takes(asked) {
			return k
		}
	}
	return len(tasks)
}

// free returns those of tasks that could be one job now: they are in none, and wait for nothing but tasks that come
// before them in it. One that is to end once it could run begins in none.
func free(c *control, tasks []int32) []int32 {
	if !slices.ContainsFunc(tasks, func(i int32) bool { return !c.idle(i) || !c.mayRun(i) }) {
		return tasks
	}
	var some []int32
	in := make(map[int32]bool, len(tasks))
	for _, i := range tasks {
		waits := c.book.of[i] == nil && c.frontier.state(i) == dag.Waiting && !c.frontier.marked[i] && after(c, i, in)
		if c.mayRun(i) && (c.idle(i) || waits) {
			in[i] = true
			some = append(some, i)
		}
	}
	return some
}

// after reports whether tasks may wait for others of their jobs, and each parent of task i is done or is in a set.
func after(c *control, i int32, in map[int32]bool) bool {
	return c.frontier.outer != nil && !slices.ContainsFunc(c.plan.Graph.Parents(int(i)), func(p int) bool {
		return !in[int32(p)] && c.frontier.state(int32(p)) != dag.Done
	})
}

// Misfits returns the numbers of clustered jobs that no worker has, and that none could take any more, though some of
// their tasks: workers have less time left than when they were released, or are others. Once they are returned, what
// they consist of is released in smaller ones. If the same workers stay there will not be another for at least slack.
func Misfits(x *Execution, offer Offer) (seqs []int64, slack time.Duration) {
	slack = math.MaxInt64
	if len(offer.Capacities) == 0 || !x.plan.clustered() {
		return nil, slack
	}
	present, few := offer.present(), offer.distinct()
	for _, e := range x.book.entries {
		held := e.worker != 0 && (e.awaited || present[x.roster.workers[e.worker].name])
		if held || e.left < 2 {
			continue
		}
		if few.takes(e.need) {
			slack = min(slack, few.slack(e.need))
			continue
		}
		if slices.ContainsFunc(x.book.remaining(e), func(i int32) bool {
			return few.takes(x.attempts.need([]int32{i}))
		}) {
			seqs = append(seqs, e.seq)
		}
	}
	slices.Sort(seqs)
	return seqs, slack
}
