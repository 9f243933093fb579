package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/internal/execution"
)

// Back-off before a failed task is tried again: the first time at once, since most failures that pass
// have passed by then; then backoffMin, doubled for each further failure, at most backoffMax.
const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

func backoff(failures int32) time.Duration {
	if failures <= 1 {
		return 0
	}
	return min(backoffMin<<min(failures-2, 16), backoffMax)
}

// apply changes the state by one record. Records may be repeated or speak of jobs and attempts that
// are over: those change nothing.
func (s *state) apply(r record) {
	switch {
	case r.Assigned != nil:
		s.assigned(r.Assigned, r.At)
	case r.Finished != nil:
		s.finished(r.Finished, r.At)
	case r.Returned != nil:
		s.returned(r.Returned, r.At)
	case r.Met != nil:
		s.workers.all[s.workers.number(r.Met.Worker)].cpus = r.Met.CPUs
	case r.Gap != nil:
		s.gap(r.Gap, r.At)
	case r.Resumed:
		s.resumed(r.At)
	}
	s.tally.cpus = max(s.tally.cpus, r.CPUs)
}

// assigned gives a job to a worker. When the journal is replayed the job is made here: who released it
// did not write that down, because until now nobody could have started it.
func (s *state) assigned(a *assignment, at msec) {
	if a.Worker == "" {
		return // who names nobody has assigned nothing
	}
	j := s.jobs[a.Seq]
	if j == nil {
		j = s.replayed(a)
	}
	if j == nil {
		return
	}
	if j.worker == 0 {
		s.running += j.left
	}
	j.worker, j.busyFrom = s.workers.number(a.Worker), at
	for _, i := range s.remaining(j) {
		s.tasks[i].worker = j.worker
	}
}

// replayed makes the job of a recorded assignment from those of its tasks that the attempt fits. A task
// that is in another job leaves it: that job must have been returned unheard. One that a damaged record
// names twice is in the job once.
func (s *state) replayed(a *assignment) *job {
	var tasks []int32
	taken := make(map[int32]bool, len(a.Parts))
	for _, p := range a.Parts {
		if s.known(p) && s.frontier.State(int(p.Task)) == dag.Ready && !taken[p.Task] {
			taken[p.Task] = true
			s.drop(p.Task)
			tasks = append(tasks, p.Task)
		}
	}
	s.nextSeq = max(s.nextSeq, a.Seq+1)
	if len(tasks) == 0 {
		return nil
	}
	return s.take(a.Seq, tasks)
}

// known reports whether p is the current attempt of a task.
func (s *state) known(p part) bool {
	return p.Task >= 0 && int(p.Task) < len(s.tasks) && s.tasks[p.Task].attempt == p.Attempt
}

// finished ends an attempt. Only the current attempt of a ready task counts.
func (s *state) finished(o *outcome, at msec) {
	if !s.known(part{o.Task, o.Attempt}) || s.frontier.State(int(o.Task)) != dag.Ready {
		return
	}
	t := &s.tasks[o.Task]
	t.started, t.ended, t.exit, t.worker = o.Started, o.Ended, int32(o.Exit), s.workers.number(o.Worker)
	t.cpu, t.rssKiB = o.CPU, o.RSSKiB
	if t.job != nil {
		t.job.busyFrom = at
	}
	s.workers.all[t.worker].ended = at
	s.drop(o.Task)
	s.tally.note(o)
	switch o.Status {
	case execution.Done:
		s.done(o.Task, at)
	case execution.Failed:
		s.failed(o, at)
	case execution.Cut:
		s.cutOff(o, at)
	default: // cancelled: nobody's fault, and nothing to make up for
		s.next(o.Task)
		s.again(o.Task, at)
	}
}

func (t *tally) note(o *outcome) {
	if o.Started == 0 {
		return // it never ran
	}
	if t.firstStarted == 0 || o.Started < t.firstStarted {
		t.firstStarted = o.Started
	}
	t.lastEnded = max(t.lastEnded, o.Ended)
}

func (s *state) done(i int32, at msec) {
	delete(s.notes, i)
	for _, child := range s.frontier.Finish(int(i)) {
		s.settled(int32(child), at)
	}
}

func (s *state) failed(o *outcome, at msec) {
	t := &s.tasks[o.Task]
	t.failures++
	s.notes[o.Task] = note{o.Reason, o.Signal}
	if t.failures <= s.plan.retries[o.Task] {
		s.tally.retries++
		s.next(o.Task)
		s.again(o.Task, at+msec(backoff(t.failures).Milliseconds()))
		return
	}
	s.tally.failed = append(s.tally.failed, o.Task)
	for _, below := range s.frontier.Fail(int(o.Task)) {
		s.settled(int32(below), at)
	}
}

// cutOff queues a task again that its worker had to kill when it left. Such a task is now known to
// need longer than it ran. Without that it would be cut off by every worker to come; with it, either a
// worker has the time or the run can say that none has.
func (s *state) cutOff(o *outcome, at msec) {
	ran := o.ran()
	s.longer[o.Task] = max(s.longer[o.Task], ran+ran/10)
	s.tally.lost += ran
	s.lose(o.Task, note{reason: o.Reason}, at)
}

// lose queues a task again under a new attempt that uses no retry.
func (s *state) lose(i int32, why note, at msec) {
	s.notes[i] = why
	s.tally.requeued++
	s.next(i)
	s.again(i, at)
}

// returned takes jobs back that no worker has any more. If they may have been running, so may each of
// their tasks that did not end.
func (s *state) returned(g *giveback, at msec) {
	var back []*job
	for _, seq := range g.Seqs {
		if j := s.jobs[seq]; j != nil {
			back = append(back, j)
		}
	}
	if g.Started {
		s.tally.lost += s.lostWork(back, at)
	}
	for _, j := range back {
		tasks := s.remaining(j)
		for _, i := range tasks {
			s.drop(i)
		}
		if !g.Started {
			s.loose = append(s.loose, batch{tasks: tasks, after: at})
			continue
		}
		for _, i := range tasks {
			s.lose(i, note{reason: g.Reason}, at)
		}
	}
}

// lostWork estimates the work lost in jobs whose workers vanished: as many of each worker's as its cpus
// could run at once, oldest first, since it last reported the end of a task.
func (s *state) lostWork(jobs []*job, at msec) time.Duration {
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.busyFrom, b.busyFrom), cmp.Compare(a.seq, b.seq))
	})
	used := make(map[int32]int) // :: worker → cpus
	var lost time.Duration
	for _, j := range jobs {
		w := &s.workers.all[j.worker]
		if used[j.worker] += j.need.cpus; j.worker != 0 && used[j.worker] <= max(w.cpus, j.need.cpus) {
			lost += at.sub(max(j.busyFrom, w.ended))
		}
	}
	return lost
}

// gap leaves out all numbers that records lost from the journal may have used.
func (s *state) gap(g *gap, at msec) {
	s.nextSeq = max(s.nextSeq, g.Seq)
	for _, p := range g.Floors {
		if p.Task < 0 || int(p.Task) >= len(s.tasks) {
			continue
		}
		s.floors[p.Task] = max(s.floors[p.Task], p.Attempt)
		if t := &s.tasks[p.Task]; s.idle(p.Task) && t.attempt <= p.Attempt {
			s.next(p.Task)
			s.again(p.Task, at)
		}
	}
}

// resumed gives tasks that failed for good all their retries again, and what was skipped below them
// its chance.
func (s *state) resumed(at msec) {
	var done []int
	for i := range s.tasks {
		switch s.frontier.State(i) {
		case dag.Done:
			done = append(done, i)
		case dag.Failed:
			s.tasks[i].failures = 0
			s.next(int32(i))
		}
	}
	frontier, err := dag.ResumeFrontier(s.plan.graph, done, nil)
	if err != nil {
		panic(err) // unreachable: done is what the frontier itself said
	}
	s.frontier, s.tally.failed = frontier, nil
	s.gather(at)
}
