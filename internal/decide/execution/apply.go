package execution

import (
	"cmp"
	"fmt"

	"github.com/corral-pilot/corral/workflow/dag"
)

// Apply changes the execution by one record, and returns the numbers of the jobs that are over now. Records may
// be repeated or speak of jobs and attempts that are over: those change nothing.
func (x *Execution) Apply(r Record) (over []int64) {
	x.control.grown.at = r.At
	switch {
	case r.Assigned != nil:
		x.assigned(r.Assigned, r.At)
	case r.Finished != nil:
		over = x.finished(r.Finished, r.At)
	case r.Returned != nil:
		over = x.returned(r.Returned, r.At)
	case r.Met != nil:
		x.roster.workers[x.roster.number(r.Met.Worker)].cpus = r.Met.CPUs
	case r.Gap != nil:
		x.skip(r.Gap, r.At)
	case r.Script != nil:
		x.control.scripted(r.Script, r.At)
	case r.Resumed:
		for i := range x.frontier.marked {
			spare(x.control, i)
		}
		reopenAll(x.control)
	case r.Added != nil:
		add(x, r.Added)
	case r.Closed:
		x.control.grown.closed = true
	case r.Retried != nil:
		retry(x.control, r.Retried)
	case r.Cancelled != nil:
		cancel(x.control, r.Cancelled)
	}
	x.roster.cpus = max(x.roster.cpus, r.CPUs)
	return append(over, rest(x.control)...)
}

// assigned gives a job to a worker. When a journal is replayed the job is made here: whoever released it did
// not write that down, because until now it could not have been started.
func (x *Execution) assigned(a *Assignment, at Msec) {
	if a.Worker == "" {
		return // an assignment to no worker is none
	}
	e := x.book.entries[a.Seq]
	if e == nil {
		e = x.replayed(a)
	}
	for _, p := range a.Parts {
		begunAfterAll(x.control, p)
	}
	if e == nil {
		return
	}
	if e.worker == 0 {
		x.book.running += int(e.left)
		for _, i := range x.book.remaining(e) {
			if x.frontier.state(i) == dag.Waiting {
				x.book.behind++
			}
		}
	}
	e.worker, e.busyFrom = x.roster.number(a.Worker), at
	for _, i := range x.book.remaining(e) {
		x.attempts.tasks[i].worker = e.worker
		if x.plan.Open {
			x.control.grown.begun(i)
		}
	}
}

// replayed makes the job of a recorded assignment from those of its tasks that the attempt fits. A task that is
// in another job leaves it: that job must have been returned without a record. A task that a damaged record
// names twice is in the job once. The job needs what it needed when it was released, though tasks of it may have been
// cancelled before it was assigned.
func (x *Execution) replayed(a *Assignment) *entry {
	var tasks, all []int32
	taken := make(map[int32]bool, len(a.Parts))
	for _, p := range a.Parts {
		if !x.attempts.current(p) || taken[p.Task] {
			continue
		}
		all = append(all, p.Task)
		x.control.reach(p.Task)
		state := x.frontier.state(p.Task)
		if x.control.mayRun(p.Task) && (state == dag.Ready || state == dag.Waiting && after(x.control, p.Task, taken)) {
			taken[p.Task] = true
			leave(x.control, p.Task, nil)
			tasks = append(tasks, p.Task)
		}
	}
	x.book.nextSeq = max(x.book.nextSeq, a.Seq+1)
	if len(tasks) == 0 {
		return nil
	}
	return x.book.enter(a.Seq, x.attempts.need(all), tasks)
}

// finished ends an attempt. Only the current attempt of a ready task counts.
func (x *Execution) finished(o *Outcome, at Msec) (over []int64) {
	if !x.attempts.current(Part{o.Task, o.Attempt}) {
		return nil
	}
	if state := x.frontier.state(o.Task); state == dag.Waiting && x.book.of[o.Task] != nil {
		over = leave(x.control, o.Task, nil) // whatever it is said to be: what comes before it in its job is not done
		x.attempts.next(o.Task)
		return over
	} else if state != dag.Ready {
		return nil
	}
	if e := x.book.of[o.Task]; e == nil && !x.control.mayRun(o.Task) {
		return nil // its process is over, or not begun
	}
	worker := x.roster.number(o.Worker)
	x.roster.workers[worker].ended = at
	if e := x.book.of[o.Task]; e != nil {
		e.busyFrom = at
	}
	over = leave(x.control, o.Task, nil)
	x.attempts.measure(o, worker)
	if x.plan.Open && wanes(x.control, o.Task) { // however it has ended
		withdraw(x.control, o.Task, true)
		return over
	}
	switch o.Status {
	case Done, Failed:
		x.control.ended(o, at)
		return over
	case Cut:
		if x.plan.Tasks[o.Task].Once && o.Started != 0 {
			loseForGood(x, o.Task, o.Reason, at)
			return over
		}
		x.attempts.cut(o)
	default: // cancelled: the task could not help it, and nothing was lost that the run still wants
		x.attempts.next(o.Task)
	}
	x.frontier.again(o.Task, at, 0)
	return over
}

// returned takes jobs back that no worker has any more. Those that never started are released as they were. If they may
// have been running, so may each of their tasks that did not end: these get another attempt, alone.
func (x *Execution) returned(g *Giveback, at Msec) (over []int64) {
	var back []*entry
	for _, seq := range g.Seqs {
		if e := x.book.entries[seq]; e != nil {
			back = append(back, e)
		}
	}
	suspects := make(map[int32]bool)
	if g.Started {
		until := min(at, cmp.Or(g.Until, at))
		lost, began := x.roster.lostWork(back, until)
		x.attempts.tally.lost += lost
		for _, e := range began {
			had := x.roster.since(e, until)
			x.attempts.tally.ran(had.from, had.to)
			x.attempts.spent.lose(had)
			suspects[x.book.remaining(e)[0]] = true
		}
	}
	for _, e := range back {
		tasks := x.book.remaining(e)
		for _, i := range tasks {
			over = leave(x.control, i, over)
			switch {
			case x.plan.Open && wanes(x.control, i):
				withdraw(x.control, i, g.Started)
			case g.Started:
				lost(x, i, g.Reason, at, suspects[i])
			}
		}
		if !g.Started { // what has failed just now is released no more
			x.frontier.addLoose(tasks)
		}
	}
	return over
}

// lost queues a task again whose worker was lost; suspect: it ran there. A task that ran on too many workers when they
// were lost is taken for the cause.
func lost(x *Execution, i int32, reason string, at Msec, suspect bool) {
	if x.frontier.state(i) > dag.Ready {
		return // with one before it in its job
	}
	if x.plan.Tasks[i].Once {
		loseForGood(x, i, reason, at)
		return
	}
	if suspect {
		x.attempts.losses[i]++
	}
	if n := x.attempts.losses[i]; suspect && x.plan.Losses > 0 && n >= x.plan.Losses {
		why := fmt.Sprintf("%d workers were lost while it ran there", n)
		x.control.conclude(verdict{at: at, unit: i, status: -1, forever: true, why: why})
		return
	}
	x.attempts.lose(i, reason)
	x.frontier.again(i, at, 0)
}

// gapSeqs is more than any run has jobs.
const gapSeqs = 1 << 32

// Gap returns what to record where a damaged piece was cut out of the journal. floors are the highest attempts
// that left anything behind, for tasks that have one.
func (x *Execution) Gap(floors []Part) *Gap {
	return &Gap{Seq: x.book.nextSeq + gapSeqs, Floors: floors}
}

// skip leaves out all numbers that records lost in a gap may have used.
func (x *Execution) skip(g *Gap, at Msec) {
	x.book.nextSeq = max(x.book.nextSeq, g.Seq)
	for _, p := range g.Floors {
		known := int(p.Task) < len(x.plan.Tasks)
		if p.Task < 0 || !known && !x.plan.Open {
			continue
		}
		x.attempts.floors[p.Task] = max(x.attempts.floors[p.Task], p.Attempt)
		if known && x.control.idle(p.Task) && x.attempts.tasks[p.Task].attempt <= p.Attempt {
			if x.plan.Tasks[p.Task].Once {
				loseForGood(x, p.Task, "what became of it is lost with a piece of the run's journal", at)
				continue
			}
			x.attempts.next(p.Task)
			x.frontier.again(p.Task, at, 0)
		}
	}
}
