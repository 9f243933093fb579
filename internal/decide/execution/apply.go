package execution

import (
	"cmp"
	"fmt"
)

// Apply applies one record, and returns the numbers of the jobs that are over as a result. A repeated record, or one
// about jobs and attempts that are over, changes nothing.
func (x *Execution) Apply(r Record) (over []int64) {
	x.now = r.At
	switch {
	case r.Assigned != nil:
		x.assign(r.Assigned, r.At)
	case r.Finished != nil:
		over = x.finish(r.Finished, r.At)
	case r.Returned != nil:
		over = x.takeBackJobs(r.Returned, r.At)
	case r.Met != nil:
		x.roster.meet(r.Met)
	case r.Gap != nil:
		x.skipGap(r.Gap, r.At)
	case r.Script != nil:
		x.scriptOver(r.Script, r.At)
	case r.Resumed:
		for i := range int32(len(x.plan.Tasks)) {
			x.unmark(i)
		}
		x.reopenAll()
	case r.Added != nil:
		x.add(r.Added)
	case r.Closed:
		x.additions.close()
	case r.Retried != nil:
		x.retry(r.Retried)
	case r.Cancelled != nil:
		x.cancel(r.Cancelled)
	}
	x.roster.sawCPUs(r.CPUs)
	return append(over, x.settle()...)
}

// settle ends the tasks that must end because of the record just applied, and returns the jobs that are over as a
// result.
func (x *Execution) settle() (over []int64) {
	for len(x.scopes.aborted)+len(x.ripe)+len(x.additions.news) > 0 {
		x.leaveAborted()
		x.collect()
		x.openGates()
	}
	over, x.over = x.over, nil
	return over
}

// assign gives a job to a worker. During a replay it also makes the job: the release was not recorded, because a job
// cannot start before it is assigned.
func (x *Execution) assign(a *Assignment, at Msec) {
	if a.Worker == "" {
		return // an assignment must have a worker
	}
	j := x.jobs.bySeq[a.Seq]
	if j == nil {
		j = x.replay(a)
	}
	for _, p := range a.Parts {
		x.beganAfterAll(p)
	}
	if j == nil {
		return
	}
	first := j.worker == 0
	j.assign(x.roster.number(a.Worker), at)
	for _, i := range x.jobs.remaining(j) {
		if first {
			x.start(i)
		}
		x.units.at(i).worker = j.worker
		if x.plan.Open {
			x.additions.began(i, x.now)
		}
	}
}

// start moves a task whose job has been given to a worker.
func (x *Execution) start(i int32) {
	x.unhold(i)
	if x.units.at(i).blocked() {
		x.units.move(i, onQueue)
	} else {
		x.units.move(i, onStart)
	}
}

// replay makes the job of a recorded assignment from the tasks whose current attempts it names. A task in another job
// leaves that job, which must have been returned without a record. A task that a damaged record names twice is added
// once. The job has the needs that it had when it was released, although some of its tasks may have been cancelled
// before it was assigned.
func (x *Execution) replay(a *Assignment) *job {
	var tasks, all []int32
	taken := make(map[int32]bool, len(a.Parts))
	for _, p := range a.Parts {
		if !x.units.current(p) || taken[p.Task] {
			continue
		}
		all = append(all, p.Task)
		x.beginAround(p.Task)
		if x.replayable(p.Task, taken) {
			taken[p.Task] = true
			x.takeBack(p.Task, nil)
			tasks = append(tasks, p.Task)
		}
	}
	x.jobs.reserve(a.Seq + 1)
	if len(tasks) == 0 {
		return nil
	}
	n := x.units.need(all)
	n.of.MemoryMiB = max(a.More, x.plan.asked(all))
	return x.jobs.enter(a.Seq, n, tasks)
}

// replayable reports whether a task may be in a job after the given tasks.
func (x *Execution) replayable(i int32, before map[int32]bool) bool {
	switch x.units.state(i) {
	case StateReady, StateRunning:
		return !x.held(i)
	case StateWaiting, StateBehind:
		return x.mayFollow(i, before)
	}
	return false
}

// finish ends an attempt. It has an effect only on the current attempt of a task that runs, or may run.
func (x *Execution) finish(o *Outcome, at Msec) (over []int64) {
	i := o.Task
	if !x.units.current(Part{i, o.Attempt}) {
		return nil
	}
	u := x.units.at(i)
	switch {
	case u.blocked() && u.job != nil:
		over = x.takeBack(i, nil) // regardless of the status: a task before it in its job is not done
		x.nextAttempt(i)
		return over
	case !u.open(), u.job == nil && u.state != StateReady:
		return nil // its process has ended, or has not begun
	}
	x.unhold(i)
	worker := x.roster.number(o.Worker)
	x.roster.heard(worker, at)
	if u.job != nil {
		u.job.heard(at)
	}
	limit := x.units.limit(o)
	over = x.jobs.leave(i, nil)
	x.measure(o, worker, limit)
	if x.plan.Open && x.units.cancelled(i) { // regardless of how it ended
		x.withdraw(i, true)
		return over
	}
	switch {
	case o.Status == Done, o.Status == Failed:
		x.processOver(o, at)
		return over
	case o.Status == Cut && x.plan.Tasks[i].Once && o.Started != 0:
		x.loseForGood(i, o.Reason, at)
		return over
	case o.Status == Cut:
		x.cut(o)
	default: // cancelled: the task is not the cause, and the run does not need the lost work
		x.nextAttempt(i)
	}
	if u.state == StateRunning {
		x.units.move(i, onReturn)
	}
	x.requeue(i, at, 0)
	return over
}

// takeBack removes a task without a result from its job, if it has one.
func (x *Execution) takeBack(i int32, over []int64) []int64 {
	over = x.jobs.leave(i, over)
	if s := x.units.state(i); s == StateRunning || s == StateBehind {
		x.units.move(i, onReturn)
	}
	if x.units.state(i) == StateReady && x.held(i) {
		x.hold(i)
	}
	return over
}

// takeBackJobs takes back jobs that no worker has any more. Jobs that never started are released again with the same
// attempt numbers. If they may have been running, so may each of their unfinished tasks: each of these gets another
// attempt in its own job.
func (x *Execution) takeBackJobs(g *Giveback, at Msec) (over []int64) {
	var back []*job
	for _, seq := range g.Seqs {
		if j := x.jobs.bySeq[seq]; j != nil {
			back = append(back, j)
		}
	}
	suspects := make(map[int32]bool)
	if g.Started {
		until := min(at, cmp.Or(g.Until, at))
		lost, began := x.roster.lostWork(back, until)
		x.tally.lost += lost
		for _, j := range began {
			had := x.roster.stretch(j, until)
			x.tally.ran(had.from, had.to)
			x.tally.hours.lose(had)
			suspects[x.jobs.remaining(j)[0]] = true
		}
	}
	for _, j := range back {
		tasks := x.jobs.remaining(j)
		for _, i := range tasks {
			over = x.takeBack(i, over)
			switch {
			case x.plan.Open && x.units.cancelled(i):
				x.withdraw(i, g.Started)
			case g.Started:
				x.lose(i, g.Reason, at, suspects[i])
			}
		}
		if !g.Started { // tasks that have just failed are not released again
			x.frontier.addLoose(tasks)
		}
	}
	return over
}

// lose requeues a task whose worker was lost; suspect means that the task was running there. A task that was running
// when too many workers were lost is considered the cause, and fails.
func (x *Execution) lose(i int32, reason string, at Msec, suspect bool) {
	if x.units.state(i).over() {
		return // it was skipped along with a task before it in its job
	}
	if x.plan.Tasks[i].Once {
		x.loseForGood(i, reason, at)
		return
	}
	if suspect {
		n := x.units.countLoss(i)
		if x.plan.Losses > 0 && n >= x.plan.Losses {
			why := fmt.Sprintf("%d workers were lost while it ran there", n)
			x.conclude(verdict{at: at, unit: i, status: -1, forever: true, why: why})
			return
		}
	}
	x.tryElsewhere(i, reason)
	x.frontier.again(i, at, 0)
}

// countLoss counts a worker lost while running a task.
func (us *units) countLoss(i int32) int {
	e := us.grant(i)
	e.losses++
	return int(e.losses)
}

// gapSeqs exceeds the number of jobs of any run.
const gapSeqs = 1 << 32

// Gap returns the record for the place where a damaged piece was cut out of the journal. floors contains the highest
// attempt that left files, for each task that has any.
func (x *Execution) Gap(floors []Part) *Gap {
	return &Gap{Seq: x.jobs.nextSeq + gapSeqs, Floors: floors}
}

// skipGap skips all numbers that records lost in the gap may have used.
func (x *Execution) skipGap(g *Gap, at Msec) {
	x.jobs.reserve(g.Seq)
	for _, p := range g.Floors {
		known := int(p.Task) < len(x.plan.Tasks)
		if p.Task < 0 || !known && !x.plan.Open {
			continue
		}
		x.units.setFloor(p)
		if !known {
			continue
		}
		u := x.units.at(p.Task)
		switch {
		case !u.idle() || u.attempt > p.Attempt:
		case x.plan.Tasks[p.Task].Once:
			x.loseForGood(p.Task, "what became of it is lost with a piece of the run's journal", at)
		default:
			x.nextAttempt(p.Task)
			x.frontier.again(p.Task, at, 0)
		}
	}
}

// setFloor records the number of an attempt that may have been made.
func (us *units) setFloor(p Part) {
	e := us.grant(p.Task)
	e.floor = max(e.floor, p.Attempt)
}
