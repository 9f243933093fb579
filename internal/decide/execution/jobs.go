package execution

import "cmp"

// jobs lists the jobs that have been released and are not over. A task is in at most one of them.
type jobs struct {
	plan    *plan
	units   *units
	bySeq   map[int64]*job
	nextSeq int64
	inUse   []int // :: category - 1 → number of jobs and subworkflows that count against its limit
}

// A job consists of the tasks that a worker is given together.
type job struct {
	seq      int64
	need     need // at its release
	tasks    []int32
	left     int32 // tasks that have not ended
	worker   int32 // 0: not assigned
	awaited  bool  // after a restart: true until its worker returns
	busyFrom Msec  // when it was assigned, or the end of one of its tasks was last reported
}

func newJobs(p *plan, us *units) *jobs {
	return &jobs{plan: p, units: us, bySeq: map[int64]*job{}, nextSeq: 1, inUse: make([]int, len(p.Limits))}
}

// compareJobs orders jobs by release.
func compareJobs(a, b *job) int { return cmp.Compare(a.seq, b.seq) }

// use adds to the jobs and subworkflows of a category; category 0 means none.
func (js *jobs) use(category, more int) {
	if category != 0 {
		js.inUse[category-1] += more
	}
}

// addCategory adds a category.
func (js *jobs) addCategory() { js.inUse = append(js.inUse, 0) }

// full reports whether a category has reached its limit of jobs and subworkflows.
func (js *jobs) full(category int) bool { return js.inUse[category-1] >= js.plan.Limits[category-1] }

// reserve skips the job numbers before seq.
func (js *jobs) reserve(seq int64) { js.nextSeq = max(js.nextSeq, seq) }

// enter makes a job of tasks that are not in a job.
func (js *jobs) enter(seq int64, n need, tasks []int32) *job {
	js.reserve(seq + 1)
	j := &job{seq: seq, need: n, tasks: tasks, left: int32(len(tasks))}
	js.bySeq[seq] = j
	js.use(js.plan.scope.rules(tasks[0]).Category, 1)
	for _, i := range tasks {
		js.units.at(i).job = j
	}
	return j
}

// remaining returns the tasks that are still in a job.
func (js *jobs) remaining(j *job) []int32 {
	if int(j.left) == len(j.tasks) {
		return j.tasks
	}
	tasks := make([]int32, 0, j.left)
	for _, i := range j.tasks {
		if js.units.at(i).job == j {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// assigned returns the jobs that workers have, in no order.
func (js *jobs) assigned() (all []*job) {
	for _, j := range js.bySeq {
		if j.worker != 0 {
			all = append(all, j)
		}
	}
	return all
}

// leave removes a task from its job, if it has one. It appends the job's number to over if that was its last task. It
// does not change the task's state.
func (js *jobs) leave(i int32, over []int64) []int64 {
	u := js.units.at(i)
	j := u.job
	if j == nil {
		return over
	}
	u.job = nil
	if j.left--; j.left > 0 {
		return over
	}
	delete(js.bySeq, j.seq)
	js.use(js.plan.scope.rules(j.tasks[0]).Category, -1)
	return append(over, j.seq)
}

// assign gives a job to a worker.
func (j *job) assign(worker int32, at Msec) { j.worker, j.busyFrom = worker, at }

// heard records that the worker has reported the end of a task of the job.
func (j *job) heard(at Msec) { j.busyFrom = at }
