package execution

import "github.com/corral-pilot/corral/dag"

// Apply changes the execution by one record, and returns the numbers of the jobs that are over now. Records may
// be repeated or speak of jobs and attempts that are over: those change nothing.
func (x *Execution) Apply(r Record) (over []int64) {
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
	case r.Resumed:
		for _, i := range x.frontier.resume() {
			x.attempts.renew(i)
		}
		x.attempts.tally.failed = nil
	}
	x.roster.cpus = max(x.roster.cpus, r.CPUs)
	return over
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
	if e == nil {
		return
	}
	if e.worker == 0 {
		x.book.running += int(e.left)
	}
	e.worker, e.busyFrom = x.roster.number(a.Worker), at
	for _, i := range x.book.remaining(e) {
		x.attempts.tasks[i].worker = e.worker
	}
}

// replayed makes the job of a recorded assignment from those of its tasks that the attempt fits. A task that is
// in another job leaves it: that job must have been returned without a record. A task that a damaged record
// names twice is in the job once.
func (x *Execution) replayed(a *Assignment) *entry {
	var tasks []int32
	taken := make(map[int32]bool, len(a.Parts))
	for _, p := range a.Parts {
		if x.attempts.current(p) && x.frontier.state(p.Task) == dag.Ready && !taken[p.Task] {
			taken[p.Task] = true
			x.book.leave(p.Task, nil)
			tasks = append(tasks, p.Task)
		}
	}
	x.book.nextSeq = max(x.book.nextSeq, a.Seq+1)
	if len(tasks) == 0 {
		return nil
	}
	return x.book.enter(a.Seq, x.attempts.need(tasks), tasks)
}

// finished ends an attempt. Only the current attempt of a ready task counts.
func (x *Execution) finished(o *Outcome, at Msec) (over []int64) {
	if !x.attempts.current(Part{o.Task, o.Attempt}) || x.frontier.state(o.Task) != dag.Ready {
		return nil
	}
	worker := x.roster.number(o.Worker)
	x.roster.workers[worker].ended = at
	if e := x.book.of[o.Task]; e != nil {
		e.busyFrom = at
	}
	over = x.book.leave(o.Task, nil)
	again, wait := x.attempts.end(o, worker)
	switch {
	case again:
		x.frontier.again(o.Task, at, wait)
	case o.Status == Done:
		x.frontier.finish(o.Task)
	default:
		x.frontier.fail(o.Task)
	}
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
	if g.Started {
		x.attempts.tally.lost += x.roster.lostWork(back, at)
	}
	for _, e := range back {
		tasks := x.book.remaining(e)
		for _, i := range tasks {
			over = x.book.leave(i, over)
			if g.Started {
				x.attempts.lose(i, g.Reason)
				x.frontier.again(i, at, 0)
			}
		}
		if !g.Started {
			x.frontier.loose = append(x.frontier.loose, tasks)
		}
	}
	return over
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
		if p.Task < 0 || int(p.Task) >= len(x.plan.Tasks) {
			continue
		}
		x.attempts.floors[p.Task] = max(x.attempts.floors[p.Task], p.Attempt)
		if x.idle(p.Task) && x.attempts.tasks[p.Task].attempt <= p.Attempt {
			x.attempts.next(p.Task)
			x.frontier.again(p.Task, at, 0)
		}
	}
}
