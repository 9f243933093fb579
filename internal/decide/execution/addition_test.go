package execution_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// An opened machine drives an open execution, and derives from the documentation what each task may do.
type opened struct {
	x       *execution.Execution
	journal []execution.Record
	clock   execution.Msec
	queued  []execution.Job
	held    []execution.Job
	tasks   []openTask
}

// An openTask is the test's model of a task: the events for which it still waits, and its history.
type openTask struct {
	pending []execution.Condition
	over    string // "", done, failed, skipped
	begun   bool   // at any time
	once    bool
	ending  bool         // it was cancelled, but its worker has not reported its end
	started map[int]bool // attempts
}

func (m *opened) tell(r execution.Record) {
	m.clock++
	r.At = m.clock
	m.x.Apply(r)
	m.journal = append(m.journal, r)
}

// settle removes Waits that are met, and skips tasks that wait in vain, until nothing changes.
func (m *opened) settle() {
	for changed := true; changed; {
		changed = false
		for i := range m.tasks {
			t := &m.tasks[i]
			vain := false
			t.pending = slices.DeleteFunc(t.pending, func(w execution.Condition) bool {
				come, never := m.stands(w)
				vain = vain || never
				changed = changed || come
				return come
			})
			if vain && t.over == "" {
				t.over, changed = "skipped", true
			}
		}
	}
	for _, jobs := range []*[]execution.Job{&m.queued, &m.held} {
		*jobs = slices.DeleteFunc(*jobs, func(j execution.Job) bool { return m.tasks[j.Tasks[0].Index].over != "" })
	}
}

// stands reports whether a Condition is met, or can never be met.
func (m *opened) stands(w execution.Condition) (come, never bool) {
	t := m.tasks[w.Task]
	switch w.When {
	case execution.Started:
		return t.begun || t.over != "", false
	case execution.Ended:
		return t.over != "", false
	case execution.Succeeded:
		return t.over == "done", t.over != "" && t.over != "done"
	}
	return t.over == "failed" || t.over == "skipped", t.over == "done"
}

func (m *opened) add(t *rapid.T) {
	first := len(m.tasks)
	a := execution.Addition{
		First: int32(first), Count: int32(rapid.IntRange(1, 3).Draw(t, "count")), Needs: corral.Resources{CPUs: 1},
		Estimate: 1000, Once: rapid.Bool().Draw(t, "once"), AtOnce: rapid.IntRange(0, 2).Draw(t, "at once"),
	}
	whens := []execution.When{execution.Started, execution.Ended, execution.Succeeded, execution.Unsuccess}
	for range rapid.IntRange(0, min(2, first)).Draw(t, "waits") {
		a.After = append(a.After, execution.Condition{
			Task: int32(rapid.IntRange(0, first-1).Draw(t, "other")), When: rapid.SampledFrom(whens).Draw(t, "when"),
		})
	}
	for range a.Count {
		m.tasks = append(m.tasks, openTask{pending: slices.Clone(a.After), once: a.Once, started: map[int]bool{}})
	}
	m.tell(execution.Record{Added: &a})
	if rapid.Bool().Draw(t, "repeated") {
		m.tell(execution.Record{Added: &a})
	}
}

// release checks that released tasks do not wait, are not over, and were not released before.
func (m *opened) release(t *rapid.T) {
	m.clock += execution.Msec(time.Minute.Milliseconds())
	for _, j := range m.x.Release(m.clock.Time(), execution.Offer{}) {
		task := &m.tasks[j.Tasks[0].Index]
		if len(task.pending) > 0 || task.over != "" || task.started[j.Tasks[0].Attempt] {
			t.Fatalf("task %s, attempt %d, is released: %+v", j.Tasks[0].ID, j.Tasks[0].Attempt, task)
		}
		m.queued = append(m.queued, j)
	}
}

// take removes a job from a list.
func (m *opened) take(t *rapid.T, from *[]execution.Job) (j execution.Job, ok bool) {
	if len(*from) == 0 {
		return j, false
	}
	k := rapid.IntRange(0, len(*from)-1).Draw(t, "job")
	j = (*from)[k]
	*from = slices.Delete(*from, k, k+1)
	return j, true
}

func (m *opened) assign(t *rapid.T) {
	j, ok := m.take(t, &m.queued)
	if !ok {
		return
	}
	task := &m.tasks[j.Tasks[0].Index]
	task.begun, task.started[j.Tasks[0].Attempt] = true, true
	m.held = append(m.held, j)
	m.tell(execution.Record{Assigned: &execution.Assignment{Seq: j.Seq, Worker: "w", Parts: partsOf(j)}})
}

func (m *opened) finish(t *rapid.T) {
	j, ok := m.take(t, &m.held)
	if !ok {
		return
	}
	i := j.Tasks[0].Index
	how := rapid.SampledFrom([]execution.Status{execution.Done, execution.Failed, execution.Cut}).Draw(t, "status")
	switch {
	case how == execution.Done && !m.tasks[i].ending:
		m.tasks[i].over = "done"
	case how == execution.Failed, m.tasks[i].once, m.tasks[i].ending:
		m.tasks[i].over, m.tasks[i].ending = "failed", false
	}
	m.tell(execution.Record{Finished: &execution.Outcome{
		Seq: j.Seq, Task: int32(i), Attempt: int32(j.Tasks[0].Attempt), Status: how, Worker: "w",
		Started: m.clock, Ended: m.clock + 1,
	}})
}

func (m *opened) lose(t *rapid.T) {
	j, ok := m.take(t, &m.held)
	if !ok {
		return
	}
	task := &m.tasks[j.Tasks[0].Index]
	begun := rapid.Bool().Draw(t, "begun")
	if task.once && begun || task.ending {
		task.over, task.ending = "failed", false
	}
	if !begun {
		delete(task.started, j.Tasks[0].Attempt)
	}
	m.tell(execution.Record{Returned: &execution.Giveback{Seqs: []int64{j.Seq}, Started: begun, Reason: "lost"}})
}

func (m *opened) chosen(t *rapid.T) []int {
	return rapid.SliceOfN(rapid.IntRange(0, len(m.tasks)-1), 1, 3).Draw(t, "tasks")
}

func (m *opened) cancel(t *rapid.T) {
	chosen := m.chosen(t)
	open, err := execution.Cancellable(m.x, chosen)
	if err != nil {
		t.Fatalf("cancelling %v: %v; what is over should not keep the others from it", chosen, err)
	}
	if len(open) == 0 {
		return
	}
	await := rapid.Bool().Draw(t, "await")
	for _, i := range open {
		task := &m.tasks[i]
		if task.over == "done" || task.ending {
			t.Fatalf("cancelling %v changes task %d: %+v", chosen, i, task)
		}
		switch {
		case task.over != "": // a task that waits in vain remains skipped
		case await && m.runs(int(i)):
			task.ending = true
		default:
			task.over = "failed"
		}
	}
	m.tell(execution.Record{Cancelled: &execution.Cancellation{Tasks: open, Why: "why", Await: await}})
}

// runs reports whether a worker has a task.
func (m *opened) runs(i int) bool {
	return slices.ContainsFunc(m.held, func(j execution.Job) bool { return j.Tasks[0].Index == i })
}

func (m *opened) retry(t *rapid.T) {
	over, err := execution.Retriable(m.x, m.chosen(t))
	if err != nil || len(over) == 0 {
		return
	}
	m.reopen(over)
	m.tell(execution.Record{Retried: over})
}

// reopen makes tasks wait for events that have not occurred. A task that still waits in vain remains skipped.
func (m *opened) reopen(tasks []int32) {
	for _, i := range tasks {
		t := &m.tasks[i]
		vain := false
		for _, w := range t.pending {
			_, never := m.stands(w)
			vain = vain || never
		}
		if !vain {
			t.over = ""
		}
	}
}

func (m *opened) resume() {
	var all []int32
	for i := range m.tasks {
		if over := m.tasks[i].over; over == "failed" || over == "skipped" {
			all = append(all, int32(i))
		}
	}
	m.reopen(all)
	m.tell(execution.Record{Resumed: true})
}

// restart replays the journal, which must give the same state of all tasks; jobs that no worker has are released again.
func (m *opened) restart(t *rapid.T) {
	x := execution.New(execution.Spec{Open: true})
	for _, r := range m.journal {
		x.Apply(r)
	}
	for i := range m.tasks {
		was, is := m.x.Task(i), x.Task(i)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Fatalf("task %d (-live +replayed):\n%s", i, diff)
		}
	}
	if was, is := m.x.Counts(), x.Counts(); was != is {
		t.Fatalf("counts %+v, replayed %+v", was, is)
	}
	m.x, m.queued = x, nil
}

// check compares the execution's state of each task with the model.
func (m *opened) check(t *rapid.T) {
	m.settle()
	counts := map[corral.TaskState]int{}
	for i := range m.tasks {
		state := m.x.Task(i).State
		counts[state]++
		task := &m.tasks[i]
		want := corral.TaskReady
		switch {
		case task.over != "":
			want = corral.TaskState(task.over)
		case m.runs(i):
			want = corral.TaskRunning
		case len(task.pending) > 0:
			want = corral.TaskWaiting
		}
		if state != want {
			t.Fatalf("task %d is %s, want %s (%+v)", i, state, want, task)
		}
	}
	c := m.x.Counts()
	if c.Waiting != counts[corral.TaskWaiting] || c.Ready != counts[corral.TaskReady] || c.Total != len(m.tasks) ||
		c.Running != counts[corral.TaskRunning] || c.Done != counts[corral.TaskDone] {
		t.Fatalf("counts %+v, want %v", c, counts)
	}
	if m.x.Done() {
		t.Fatal("an open execution is done")
	}
}

// TestOpenProperty: for any additions, events and requests, a task runs exactly when all its Waits are met, and a
// replay gives the same state.
func TestOpenProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &opened{x: execution.New(execution.Spec{Open: true}), clock: 1}
		m.add(t)
		some := func(act func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				act(t)
				m.check(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": some(m.add), "release": some(m.release), "assign": some(m.assign), "finish": some(m.finish),
			"lose": some(m.lose), "cancel": some(m.cancel), "retry": some(m.retry), "restart": some(m.restart),
			"resume": some(func(*rapid.T) { m.resume() }),
		})
		m.end(t)
	})
}

// end plays to the end: all tasks that could run are over when the execution is closed.
func (m *opened) end(t *rapid.T) {
	m.tell(execution.Record{Closed: true})
	for range 10 * len(m.tasks) {
		m.release(t)
		for len(m.queued) > 0 {
			m.assign(t)
		}
		for len(m.held) > 0 {
			m.finish(t)
			m.settle()
		}
	}
	for i := range m.tasks {
		if state := m.x.Task(i).State; state == corral.TaskReady || state == corral.TaskRunning {
			t.Fatalf("task %d is %s in the end", i, state)
		}
	}
}

// With Await, a cancelled task that a worker has is over when the worker reports its end: until then, tasks that wait
// for it do not begin, and it is not retried. In older journals, it was over immediately.
func TestCancelledTaskEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	ends := map[string]execution.Record{
		"cancelled": {Finished: &execution.Outcome{Seq: 1, Attempt: 1, Status: execution.Cancelled, Exit: 3, Worker: "w", Started: 3, Ended: 9}},
		"done":      {Finished: &execution.Outcome{Seq: 1, Attempt: 1, Status: execution.Done, Worker: "w", Started: 3, Ended: 9}},
		"lost":      {Returned: &execution.Giveback{Seqs: []int64{1}, Started: true, Reason: "lost"}},
		"returned":  {Returned: &execution.Giveback{Seqs: []int64{1}, Reason: "not begun"}},
	}
	for how, end := range ends {
		for _, await := range []bool{true, false} {
			m := &opened{x: execution.New(execution.Spec{Open: true}), clock: 1}
			m.tell(execution.Record{Added: &execution.Addition{Count: 1, Needs: corral.Resources{CPUs: 1}, Estimate: 1000}})
			m.tell(execution.Record{Added: &execution.Addition{
				First: 1, Count: 1, Needs: corral.Resources{CPUs: 1}, Estimate: 1000,
				After: []execution.Condition{{Task: 0, When: execution.Ended}},
			}})
			jobs := m.x.Release(m.clock.Time(), execution.Offer{})
			m.tell(execution.Record{Assigned: &execution.Assignment{Seq: jobs[0].Seq, Worker: "w", Parts: partsOf(jobs[0])}})
			m.tell(execution.Record{Cancelled: &execution.Cancellation{Tasks: []int32{0}, Why: "by ann", Await: await}})
			if kills := execution.Kills(m.x); !slices.Equal(kills, []int64{1}) {
				t.Errorf("%s: jobs %v are killed", how, kills)
			}
			at := m.x.Task(0)
			free := len(m.x.Release(m.clock.Time(), execution.Offer{})) == 1
			_, retry := execution.Retriable(m.x, []int{0})
			ending := at.State == corral.TaskRunning && !free && retry != nil
			if ending != await || at.Cause != execution.Withdrawn || at.Reason != "by ann" {
				t.Errorf("%s, awaited: %v: %+v, what waits for it is free: %v, retry: %v", how, await, at, free, retry)
			}
			if again, err := execution.Cancellable(m.x, []int{0}); len(again) > 0 || err != nil {
				t.Errorf("%s: it can be cancelled again: %v", how, err)
			}
			m.tell(end)
			at = m.x.Task(0)
			if at.State != corral.TaskFailed || at.Cause != execution.Withdrawn || at.Reason != "by ann" {
				t.Errorf("%s, awaited: %v: %+v in the end", how, await, at)
			}
			if await && len(m.x.Release(m.clock.Time(), execution.Offer{})) != 1 {
				t.Errorf("%s: what waits for its end does not begin", how)
			}
			if _, err := execution.Retriable(m.x, []int{0}); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

// The times of a task's last attempt are its worker's. If the worker has not reported the attempt, because the task was
// cancelled or lost, only the beginning is known.
func TestTimesOfAddedTasks(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return execution.Msec(ms).Time() }
	give := execution.Record{At: 20, Assigned: &execution.Assignment{Seq: 1, Worker: "w", Parts: []part{{Task: 0, Attempt: 1}}}}
	finish := func(started, ended execution.Msec) execution.Record {
		return execution.Record{At: 40, Finished: &execution.Outcome{Seq: 1, Attempt: 1, Status: execution.Done, Worker: "w",
			Started: started, Ended: ended}}
	}
	cancel := execution.Record{At: 40, Cancelled: &execution.Cancellation{Tasks: []int32{0}}}
	for _, tt := range []struct {
		name    string
		records []execution.Record
		want    []time.Time // when it was added, started, ended, and over
	}{
		{"added", nil, []time.Time{at(10), {}, {}, {}}},
		{"running", []execution.Record{give}, []time.Time{at(10), at(20), {}, {}}},
		{"done", []execution.Record{give, finish(22, 38)}, []time.Time{at(10), at(22), at(38), at(40)}},
		{"done at once", []execution.Record{give, finish(20, 20)}, []time.Time{at(10), at(20), at(20), at(40)}},
		{"cancelled before it began", []execution.Record{cancel}, []time.Time{at(10), {}, {}, at(40)}},
		{"cancelled while it ran", []execution.Record{give, cancel}, []time.Time{at(10), at(20), {}, at(40)}},
	} {
		x := execution.New(execution.Spec{Open: true})
		x.Apply(execution.Record{At: 10, Added: &execution.Addition{Count: 1, Needs: corral.Resources{CPUs: 1}, Estimate: 1000}})
		for _, r := range tt.records {
			x.Apply(r)
		}
		info := x.Task(0)
		if diff := cmp.Diff(tt.want, []time.Time{info.AddedAt, info.StartedAt, info.EndedAt, info.OverAt}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A damaged or repeated addition adds nothing, and Waits for tasks that do not precede it do not count.
func TestOddAdditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		a     execution.Addition // to three tasks
		added int
		ready int
	}{
		{"two more", execution.Addition{First: 3, Count: 2}, 2, 2},
		{"none", execution.Addition{First: 3}, 0, 0},
		{"fewer than none", execution.Addition{First: 3, Count: -1}, 0, 0},
		{"repeated", execution.Addition{First: 0, Count: 3}, 0, 0},
		{"one is missing", execution.Addition{First: 4, Count: 1}, 0, 0},
		{"too many", execution.Addition{First: 3, Count: execution.MostTasks - 2}, 0, 0},
		{"wait for the last", execution.Addition{First: 3, Count: 1, After: []execution.Condition{{Task: 2, When: execution.Ended}}}, 1, 0},
		{"wait for itself", execution.Addition{First: 3, Count: 1, After: []execution.Condition{{Task: 3, When: execution.Ended}}}, 1, 1},
		{"wait for nothing", execution.Addition{First: 3, Count: 1, After: []execution.Condition{{Task: -1, When: execution.Ended}}}, 1, 1},
	} {
		x := execution.New(execution.Spec{Open: true})
		x.Apply(execution.Record{At: 1, Added: &execution.Addition{Count: 3, Needs: corral.Resources{CPUs: 1}, Estimate: 1000}})
		x.Apply(execution.Record{At: 2, Added: &tt.a})
		if n, c := execution.Size(x)-3, x.Counts(); n != tt.added || c.Ready-3 != tt.ready || c.Total != 3+n {
			t.Errorf("%s: %d are added, want %d, and %d of them ready, want %d", tt.name, n, tt.added, c.Ready-3, tt.ready)
		}
	}
}
