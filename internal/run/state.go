package run

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
)

// A state is what became of a run's tasks so far. It is a function of the plan and of the records
// applied, in their order, and of nothing else: no clock, no I/O. One goroutine owns it.
type state struct {
	plan     *plan
	frontier *dag.Frontier
	tasks    []taskState
	missing  []int32 // of each cluster of the plan: its tasks that still wait for a parent

	jobs    map[int64]*job // released and not over, by their number
	loose   []batch        // tasks to be released
	nextSeq int64
	running int // tasks in assigned jobs

	workers workers
	notes   map[int32]note          // only tasks that failed or were lost
	longer  map[int32]time.Duration // estimates raised by a cut, see cutOff
	floors  map[int32]int32         // attempts that a gap in the journal may have used
	tally   tally
}

// taskState is kept for each of up to hundreds of thousands of tasks, hence its small types.
type taskState struct {
	started, ended msec // of the last attempt that ended
	cpu            msec // it used
	rssKiB         int64
	job            *job // the released job it is in, or nil
	attempt        int32
	worker         int32 // of the last attempt that was assigned, in state.workers; 0 is nobody
	exit           int32 // of the last attempt that ended
	failures       int32 // since the beginning, or since the run was resumed
}

// A note says why the last attempt of a task that failed or was lost did not finish.
type note struct {
	reason string
	signal string
}

// A tally sums what the report needs and no task remembers.
type tally struct {
	cpus         int // most that were registered at once
	firstStarted msec
	lastEnded    msec
	lost         time.Duration
	requeued     int
	retries      int
	failed       []int32 // for good, in order of their failing
}

// A job is what the cluster was given.
type job struct {
	seq      int64
	need     need // when it was released
	parts    []part
	left     int   // parts that have not ended
	worker   int32 // 0: not assigned
	awaited  bool  // after a restart: until its worker comes back
	busyFrom msec  // when it was assigned, or its last part reported ended
}

// A batch holds tasks that may be released, not before an instant: those whose first attempt it is as
// one job, the others alone. It may name tasks that have been released since.
type batch struct {
	tasks []int32
	after msec
}

func newState(p *plan) *state {
	s := &state{
		plan:     p,
		frontier: dag.NewFrontier(p.graph),
		tasks:    make([]taskState, p.graph.Len()),
		jobs:     make(map[int64]*job),
		nextSeq:  1,
		workers:  workers{all: []worker{{}}, index: map[string]int32{"": 0}},
		notes:    make(map[int32]note),
		longer:   make(map[int32]time.Duration),
		floors:   make(map[int32]int32),
	}
	for i := range s.tasks {
		s.tasks[i].attempt = 1
	}
	s.gather(0)
	return s
}

// gather counts what each cluster waits for and makes those that wait for nothing loose. It is for a
// frontier that was just made.
func (s *state) gather(now msec) {
	s.missing = make([]int32, len(s.plan.clusters))
	for c, tasks := range s.plan.clusters {
		for _, i := range tasks {
			if s.frontier.State(int(i)) == dag.Waiting {
				s.missing[c]++
			}
		}
		if s.missing[c] == 0 {
			s.loosen(int32(c), now)
		}
	}
}

// settled takes note that task i, which waited, became ready or was skipped: when that was the last
// one its cluster waited for, the cluster can be released.
func (s *state) settled(i int32, now msec) {
	c := s.plan.clusterOf[i]
	if s.missing[c]--; s.missing[c] == 0 {
		s.loosen(c, now)
	}
}

// loosen makes the ready tasks of a cluster loose. It is the first release of each, unless the run was
// resumed.
func (s *state) loosen(c int32, now msec) {
	s.loose = append(s.loose, batch{tasks: s.plan.clusters[c], after: now})
}

// again makes one task loose.
func (s *state) again(i int32, after msec) {
	s.loose = append(s.loose, batch{tasks: []int32{i}, after: after})
}

// idle reports whether task i could be released: it is ready and in no job.
func (s *state) idle(i int32) bool {
	return s.frontier.State(int(i)) == dag.Ready && s.tasks[i].job == nil
}

// next gives task i its next attempt number.
func (s *state) next(i int32) {
	s.tasks[i].attempt = max(s.tasks[i].attempt, s.floors[i]) + 1
}

// need returns what task i asks of a worker.
func (s *state) need(i int32) need {
	n := s.plan.needs[i]
	n.time = max(n.time, s.longer[i])
	return n
}

// needOf returns what a job of these tasks asks of a worker: they run one after another.
func (s *state) needOf(tasks []int32) need {
	n := s.need(tasks[0])
	for _, i := range tasks[1:] {
		n.time += s.need(i).time
	}
	return n
}

// take makes a job of tasks, each of which must be idle.
func (s *state) take(seq int64, tasks []int32) *job {
	j := &job{seq: seq, need: s.needOf(tasks), parts: make([]part, len(tasks)), left: len(tasks)}
	s.jobs[seq] = j
	for k, i := range tasks {
		j.parts[k] = part{Task: i, Attempt: s.tasks[i].attempt}
		s.tasks[i].job = j
	}
	return j
}

// drop takes task i out of its job, if it is in one.
func (s *state) drop(i int32) {
	j := s.tasks[i].job
	if j == nil {
		return
	}
	s.tasks[i].job = nil
	if j.worker != 0 {
		s.running--
	}
	if j.left--; j.left == 0 {
		delete(s.jobs, j.seq)
	}
}

// remaining returns the tasks that are still in job j.
func (s *state) remaining(j *job) []int32 {
	tasks := make([]int32, 0, j.left)
	for _, p := range j.parts {
		if s.tasks[p.Task].job == j {
			tasks = append(tasks, p.Task)
		}
	}
	return tasks
}

// counts returns how many tasks do what.
func (s *state) counts() corral.RunTasks {
	c := s.frontier.Counts()
	return corral.RunTasks{
		Total:   len(s.tasks),
		Waiting: c.Waiting,
		Ready:   c.Ready - s.running,
		Running: s.running,
		Done:    c.Done,
		Failed:  c.Failed,
		Skipped: c.Skipped,
	}
}

// A worker is what is remembered of one that the run met.
type worker struct {
	name  string
	cpus  int  // 0: not known yet
	ended msec // when it reported the end of an attempt last
}

// workers numbers the workers that the run met; 0 is nobody.
type workers struct {
	all   []worker
	index map[string]int32
}

func (w *workers) number(name string) int32 {
	n, ok := w.index[name]
	if !ok {
		n = int32(len(w.all))
		w.all = append(w.all, worker{name: name})
		w.index[name] = n
	}
	return n
}

// cpusOf returns how many cpus a worker has, 0 if that is not known.
func (s *state) cpusOf(name string) int {
	return s.workers.all[s.workers.index[name]].cpus
}

// status says what task i is doing.
func (s *state) status(i int32) corral.TaskState {
	switch s.frontier.State(int(i)) {
	case dag.Waiting:
		return corral.TaskWaiting
	case dag.Done:
		return corral.TaskDone
	case dag.Failed:
		return corral.TaskFailed
	case dag.Skipped:
		return corral.TaskSkipped
	}
	if j := s.tasks[i].job; j != nil && j.worker != 0 {
		return corral.TaskRunning
	}
	return corral.TaskReady
}
