package execution

import (
	"math"
	"slices"
	"time"
)

// Release makes jobs of the loose tasks that are due, ordered by descending priority and then by descending upward
// rank, as far as the limits of their categories allow. offer is the latest known offer; it is used only for clustered
// jobs, see split, and for tasks that were killed for their memory. The caller must fill in each Job's Run, Dir and
// Mark, and the commands of its tasks.
func (x *Execution) Release(now time.Time, offer Offer) []Job {
	if len(x.frontier.loose) > 0 && x.plan.clustered() {
		offer = offer.distinct()
	}
	var all []candidate
	for more := true; more; more = len(x.frontier.loose) > 0 { // subworkflows that begin here make tasks loose
		for _, tasks := range x.frontier.due(ToMsec(now)) {
			for _, list := range x.split(tasks, offer) {
				c := candidate{tasks: list, urgency: x.plan.urgency(list)}
				if category := x.plan.scope.rules(list[0]).Category; category != 0 {
					x.order.add(category, agendum{urgency: c.urgency, tasks: list})
				} else {
					all = append(all, c)
				}
			}
		}
		for category, ok := x.order.next(0); ok; category, ok = x.order.next(category) {
			for tasks := x.nextOf(category); tasks != nil; tasks = x.nextOf(category) {
				all = append(all, candidate{tasks, x.plan.urgency(tasks), x.enter(tasks, offer)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.urgency.level(b.urgency) })
	jobs, n := make([]Job, 0, len(all)), 0
	for _, c := range all {
		n += len(c.tasks)
	}
	tasks := make([]Task, n)
	for _, c := range all {
		if c.job == nil {
			if c.tasks = x.releasable(c.tasks); len(c.tasks) == 0 {
				continue // they were loose twice and have just been released
			}
			c.job = x.enter(c.tasks, offer)
		}
		jobs = append(jobs, x.jobOf(c.job, c.tasks, tasks))
		tasks = tasks[len(c.tasks):]
	}
	return jobs
}

// A candidate holds the tasks of a future job; job is nil until it is made.
type candidate struct {
	tasks   []int32
	urgency urgency
	job     *job
}

// enter makes a job of tasks, with its need limited to what the offer can meet.
func (x *Execution) enter(tasks []int32, offer Offer) *job {
	return x.jobs.enter(x.jobs.nextSeq, x.units.within(x.units.need(tasks), tasks, offer), tasks)
}

// jobOf returns j in the form for the cluster, with the current attempts at tasks, which must be those still in j. It
// stores them in given, which has room for them.
func (x *Execution) jobOf(j *job, tasks []int32, given []Task) Job {
	of := j.need.of
	g := Job{
		Seq: j.seq, CPUs: of.CPUs, MemoryMiB: of.MemoryMiB, GPUs: of.GPUs, DiskMiB: of.DiskMiB,
		Leaf: x.plan.leaves(tasks), Class: x.plan.scope.rules(tasks[0]).Priority,
		Priority: x.plan.highest(tasks).Seconds(), Tasks: given[:len(tasks):len(tasks)],
		More: of.MemoryMiB > x.plan.asked(tasks),
	}
	for k, i := range tasks {
		u := x.units.at(i)
		g.Ordered = g.Ordered || u.blocked()
		g.Tasks[k] = Task{
			Index: int(i), ID: x.plan.Tasks[i].ID, Attempt: int(u.attempt), Estimate: x.units.estimate(i),
		}
	}
	return g
}

// split divides tasks that are loose together into jobs. Tasks in their first attempt share jobs; the others are alone,
// so that a task is not repeated because of another. A list that would take longer than any worker stays, or need more
// than any worker has, is divided into jobs as large as some worker could take; a task that no worker could take is a
// job alone. The rest of a cluster is divided into jobs of half that time: workers have less time with every second
// that a job waits, and jobs that just fit would be divided again and again until each task is alone. A task with a PRE
// script is a separate cluster: split requests its script.
func (x *Execution) split(tasks []int32, offer Offer) (lists [][]int32) {
	if len(tasks) == 1 {
		switch i := tasks[0]; {
		case x.frontier.backsOff(i):
		case x.units.state(i) == StatePreparing:
			x.scripts.request(i)
		case x.releasableAlone(i):
			return [][]int32{tasks}
		}
		return nil
	}
	var first []int32
	for k, i := range tasks {
		switch {
		case x.frontier.backsOff(i):
		case x.units.at(i).attempt == 1:
			first = append(first, i)
		case x.units.at(i).idle():
			lists = append(lists, tasks[k:k+1:k+1])
		}
	}
	for first = x.releasable(first); len(first) > 0; {
		left := len(tasks) < len(x.plan.tasksOf(int(x.plan.clusterOf[first[0]])))
		n := x.fitting(first, offer, left)
		lists = append(lists, first[:n:n])
		first = first[n:]
	}
	return lists
}

// fitting returns how many of tasks, from the first on, some worker could take as one job; at least one. If they are
// the rest of a cluster and not all fit, the job takes at most half of that worker's time. If the offer is empty, the
// workers are unknown and all tasks fit.
func (x *Execution) fitting(tasks []int32, offer Offer, left bool) int {
	if len(offer.Capacities) == 0 || offer.takes(x.units.need(tasks)) {
		return len(tasks)
	}
	n := x.units.need(tasks[:1])
	for k := 1; k < len(tasks); k++ {
		n = n.and(x.units.need(tasks[k : k+1]))
		wanted := n
		if left {
			wanted.time *= 2
		}
		if !offer.takes(wanted) {
			return k
		}
	}
	return len(tasks)
}

// releasableAlone reports whether a task may become a job now: it is ready and not in a job.
func (x *Execution) releasableAlone(i int32) bool {
	return x.units.state(i) == StateReady && x.units.at(i).job == nil
}

// releasable returns the tasks that could be one job now: they are not in a job, and wait only for earlier tasks of
// this job. A task that is marked to fail is not released.
func (x *Execution) releasable(tasks []int32) []int32 {
	if !slices.ContainsFunc(tasks, func(i int32) bool { return !x.releasableAlone(i) }) {
		return tasks
	}
	var some []int32
	in := make(map[int32]bool, len(tasks))
	for _, i := range tasks {
		follows := x.units.at(i).job == nil && !x.units.extra(i).cancel.later && x.mayFollow(i, in)
		if x.releasableAlone(i) || follows {
			in[i] = true
			some = append(some, i)
		}
	}
	return some
}

// mayFollow reports whether a waiting task may be in a job after the given tasks: tasks may wait for others in their
// jobs, and each of its parents is done or one of the given tasks.
func (x *Execution) mayFollow(i int32, before map[int32]bool) bool {
	if x.frontier.outer == nil || !x.units.at(i).blocked() || x.scripts.preparing(i) {
		return false
	}
	return !slices.ContainsFunc(x.plan.Graph.Parents(int(i)), func(p int) bool {
		return !before[int32(p)] && x.units.state(int32(p)) != StateDone
	})
}

// Misfits returns the numbers of jobs that no worker has and that are to be released again. For some of them, the
// memory that their tasks are assumed to need has changed. Others have several tasks and none of the workers could take
// them any more, although some worker could take some of their tasks: workers have less time left than at the release,
// or have changed. Once these jobs have been returned, their tasks are released with the new memory, or in smaller
// jobs. If the workers remain the same, there will not be another misfit for at least slack, unless tasks are killed
// for their memory.
func Misfits(x *Execution, offer Offer) (seqs []int64, slack time.Duration) {
	slack = math.MaxInt64
	sized := x.tally.overMemory > 0
	x.units.resized = false
	if len(offer.Capacities) == 0 || !x.plan.clustered() && !sized {
		return nil, slack
	}
	present, few := offer.present(), offer.distinct()
	for _, j := range x.jobs.bySeq {
		held := j.worker != 0 && (j.awaited || present[x.roster.workers[j.worker].name])
		if held {
			continue
		}
		if sized && j.worker == 0 && x.misfits(j, few) {
			seqs = append(seqs, j.seq)
			continue
		}
		if j.left < 2 {
			continue
		}
		if few.takes(j.need) {
			slack = min(slack, few.slack(j.need))
			continue
		}
		if slices.ContainsFunc(x.jobs.remaining(j), func(i int32) bool {
			return few.takes(x.units.need([]int32{i}))
		}) {
			seqs = append(seqs, j.seq)
		}
	}
	slices.Sort(seqs)
	return seqs, slack
}
