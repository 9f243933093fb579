package execution_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A part is an attempt at a task.
type part = execution.Part

// A machine drives an execution with the events that a cluster could report, and keeps the records as the journal.
type machine struct {
	spec    execution.Spec
	x       *execution.Execution
	journal []execution.Record
	clock   execution.Msec
	queued  []execution.Job  // released, but not assigned
	held    []execution.Job  // assigned, with the tasks that have not ended
	stopped map[int64]bool   // jobs whose workers will only return the remaining tasks
	workers map[int64]string // :: job → the worker that has it
	ran     map[part]bool    // attempts that may have been running
	done    map[int32]bool   // tasks

	cancelled map[int32]bool // tasks that are to end

	parts map[int64][]part     // of each job at its release
	late  []*execution.Outcome // of attempts cancelled on their workers
}

func (m *machine) now() time.Time { return m.clock.Time() }

// tell applies a record and checks that the jobs reported as over are those without remaining tasks. Tasks that end
// without a report of their workers leave their jobs.
func (m *machine) tell(t *rapid.T, r execution.Record) {
	m.clock++
	r.At = m.clock
	over := m.x.Apply(r)
	m.journal = append(m.journal, r)
	var want []int64
	for _, jobs := range []*[]execution.Job{&m.queued, &m.held} {
		for k := range *jobs {
			m.leave(&(*jobs)[k], jobs == &m.held)
		}
		*jobs = slices.DeleteFunc(*jobs, func(j execution.Job) bool {
			if len(j.Tasks) == 0 {
				want = append(want, j.Seq)
			}
			return len(j.Tasks) == 0
		})
	}
	slices.Sort(want)
	slices.Sort(over)
	if diff := cmp.Diff(want, over); diff != "" {
		t.Fatalf("jobs that are over after %+v (-want +got):\n%s", r, diff)
	}
	if n := m.x.Jobs(); n != len(m.queued)+len(m.held) {
		t.Fatalf("%d jobs, want %d queued and %d held", n, len(m.queued), len(m.held))
	}
	m.count(t)
}

// leave removes from a job the tasks that failed because they were cancelled, and the tasks skipped below them.
func (m *machine) leave(j *execution.Job, held bool) {
	j.Tasks = slices.DeleteFunc(slices.Clone(j.Tasks), func(task execution.Task) bool {
		state, p := m.x.Task(task.Index).State, part{Task: int32(task.Index), Attempt: int32(task.Attempt)}
		switch {
		case state == corral.TaskFailed && held:
			m.late = append(m.late, &execution.Outcome{
				Seq: j.Seq, Task: p.Task, Attempt: p.Attempt, Worker: m.workers[j.Seq],
			})
		case state == corral.TaskSkipped && m.stopped[j.Seq]:
			delete(m.ran, p) // its worker returns it: a task before it did not succeed
		}
		return state == corral.TaskFailed || state == corral.TaskSkipped
	})
}

// tellLate records workers' results of attempts that have been cancelled: they change nothing.
func (m *machine) tellLate(t *rapid.T) {
	late := m.late
	m.late = nil
	for _, o := range late {
		o.Status = rapid.SampledFrom([]execution.Status{execution.Done, execution.Cancelled}).Draw(t, "late")
		was := m.x.Counts()
		m.tell(t, execution.Record{Finished: o})
		if is := m.x.Counts(); is != was {
			t.Fatalf("what a cancelled task's worker tells changed the counts from %+v to %+v", was, is)
		}
	}
}

// count compares the counts with the states of the tasks.
func (m *machine) count(t *rapid.T) {
	c, each := m.x.Counts(), map[corral.TaskState]int{}
	for i := range m.spec.Tasks {
		each[m.x.Task(i).State]++
	}
	want := corral.RunTasks{
		Total: len(m.spec.Tasks), Waiting: each[corral.TaskWaiting], Ready: each[corral.TaskReady],
		Running: each[corral.TaskRunning], Done: each[corral.TaskDone], Failed: each[corral.TaskFailed],
		Skipped: each[corral.TaskSkipped],
	}
	held := 0
	for _, j := range m.held {
		held += len(j.Tasks)
	}
	if c != want || c.Running != held || m.x.Done() != (c.Waiting+c.Ready+c.Running == 0) {
		t.Fatalf("counts %+v, want %+v with %d running; done %v", c, want, held, m.x.Done())
	}
}

func (m *machine) release(t *rapid.T) {
	m.clock += execution.Msec(time.Minute.Milliseconds()) // longer than any back-off
	for _, j := range m.x.Release(m.now(), execution.Offer{}) {
		before := map[int]bool{} // in the job
		for _, task := range j.Tasks {
			if i := int32(task.Index); m.done[i] || m.ran[part{Task: i, Attempt: int32(task.Attempt)}] {
				t.Fatalf("task %d is released again as attempt %d", i, task.Attempt)
			}
			for _, parent := range m.spec.Graph.Parents(task.Index) {
				if !m.done[int32(parent)] && !(j.Ordered && before[parent]) {
					t.Fatalf("task %d is released before its parent %d is done", task.Index, parent)
				}
			}
			before[task.Index] = true
		}
		m.queued = append(m.queued, j)
		m.parts[j.Seq] = partsOf(j)
	}
	if at, ok := m.x.Next(); ok {
		t.Fatalf("after a release that let everything go the next is due at %s", at)
	}
	m.nothingForgotten(t)
	m.count(t)
}

// nothingForgotten checks that every task whose parents are done is in a job, or waits together with other tasks of its
// cluster.
func (m *machine) nothingForgotten(t *rapid.T) {
	in := map[int]bool{}
	for _, j := range slices.Concat(m.queued, m.held) {
		for _, task := range j.Tasks {
			in[task.Index] = true
		}
	}
	clusters := m.spec.Clusters
	if clusters == nil {
		for i := range m.spec.Tasks {
			clusters = append(clusters, []int{i})
		}
	}
	for _, cluster := range clusters {
		waits := false // for a task of another cluster, if it was never released
		for _, i := range cluster {
			waits = waits || m.x.Task(i).State == corral.TaskWaiting && !in[i] &&
				slices.ContainsFunc(m.spec.Graph.Parents(i), func(p int) bool {
					return !m.done[int32(p)] && !slices.Contains(cluster, p)
				})
		}
		for _, i := range cluster {
			if m.x.Task(i).State == corral.TaskReady && !in[i] && !waits {
				t.Fatalf("task %d of cluster %v is ready and in no job", i, cluster)
			}
		}
	}
}

func partsOf(j execution.Job) (parts []part) {
	for _, task := range j.Tasks {
		parts = append(parts, part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
	}
	return parts
}

// dropped reports whether an attempt will not be made because its task, or one before it, was cancelled.
func (m *machine) dropped(p part) bool {
	state := m.x.Task(int(p.Task)).State
	return state == corral.TaskFailed || state == corral.TaskSkipped
}

func all(parts []part, ok func(part) bool) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return !ok(p) })
}

func (m *machine) assign(t *rapid.T) {
	k := rapid.IntRange(0, len(m.queued)-1).Draw(t, "queued")
	j := m.queued[k]
	m.queued = slices.Delete(m.queued, k, k+1)
	parts := m.parts[j.Seq]
	left := func(p part) bool { return slices.Contains(partsOf(j), p) || m.dropped(p) }
	if len(parts) > len(j.Tasks) && (!all(parts, left) || rapid.Bool().Draw(t, "taken back")) {
		m.held = append(m.held, j)
		m.giveBack(t, len(m.held)-1, false) // some of its tasks were cancelled; otherwise, it was too late
		return
	}
	for _, p := range parts {
		m.ran[p] = true
	}
	m.held = append(m.held, j)
	workers := []string{fmt.Sprintf("w%d", k%3)}
	if rapid.IntRange(0, 4).Draw(t, "handed back") == 0 { // it goes to another worker, and only this is reported
		workers = append(workers, "other")
	}
	for _, w := range workers {
		m.workers[j.Seq] = w
		a := &execution.Assignment{Seq: j.Seq, Worker: w, Parts: parts}
		if j.More {
			a.More = j.MemoryMiB
		}
		m.tell(t, execution.Record{Assigned: a})
	}
}

// finish ends the first task of a held job.
func (m *machine) finish(t *rapid.T, k int, status execution.Status) {
	j := &m.held[k]
	if m.stopped[j.Seq] {
		m.giveBack(t, k, false)
		return
	}
	task := j.Tasks[0]
	if m.cancelled[int32(task.Index)] {
		t.Fatalf("task %d was cancelled and runs", task.Index)
	}
	j.Tasks = j.Tasks[1:]
	m.stopped[j.Seq] = j.Ordered && status != execution.Done
	m.done[int32(task.Index)] = m.done[int32(task.Index)] || status == execution.Done
	r := execution.Record{Finished: &execution.Outcome{
		Seq: j.Seq, Task: int32(task.Index), Attempt: int32(task.Attempt), Status: status,
		Worker: m.workers[j.Seq], Started: m.clock, Ended: m.clock + 7,
	}}
	r.Finished.RSSKiB = rapid.SampledFrom([]int64{0, 50 << 10, 300 << 10}).Draw(t, "used")
	if status == execution.Failed && rapid.Bool().Draw(t, "for its memory") {
		r.Finished.Cause = execution.OverMemory
	}
	m.tell(t, r)
	if rapid.Bool().Draw(t, "repeated") {
		before := m.x.Counts()
		m.tell(t, r)
		if after := m.x.Counts(); after != before {
			t.Fatalf("a repeated result changed the counts from %+v to %+v", before, after)
		}
	}
}

func (m *machine) giveBack(t *rapid.T, k int, started bool) {
	j := &m.held[k]
	for _, task := range j.Tasks {
		if !started {
			delete(m.ran, part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
		}
	}
	j.Tasks = nil
	back := &execution.Giveback{Seqs: []int64{j.Seq}, Started: started, Reason: "lost"}
	m.tell(t, execution.Record{Returned: back})
}

// restart replaces the execution by a replay of the journal, which lacks only the jobs that no worker has.
func (m *machine) restart(t *rapid.T) {
	again := execution.New(m.spec)
	for _, rec := range m.journal {
		again.Apply(rec)
	}
	if diff := cmp.Diff(lasting(m.spec, m.x), lasting(m.spec, again)); diff != "" {
		t.Fatalf("replayed execution differs (-live +replayed):\n%s", diff)
	}
	m.x, m.queued = again, nil // the remaining tasks of stopped jobs are still held
	m.count(t)
}

// lasting describes the state of an execution that must survive a restart.
func lasting(spec execution.Spec, x *execution.Execution) any {
	tasks := make([]execution.TaskInfo, len(spec.Tasks))
	for i := range tasks {
		tasks[i] = x.Task(i)
	}
	return []any{tasks, x.Counts(), x.Failed(), x.Report(time.Unix(0, 0)), x.Expected(), execution.Learned(x)}
}

func (m *machine) step(t *rapid.T) {
	pick := func() int { return rapid.IntRange(0, len(m.held)-1).Draw(t, "held") }
	ends := []execution.Status{execution.Done, execution.Done, execution.Done, execution.Failed, execution.Cut, execution.Cancelled}
	switch event := rapid.IntRange(0, 11).Draw(t, "event"); {
	case event == 10:
		m.cancel(t)
	case event == 11 && len(m.x.Failed()) > 0:
		m.retry(t)
	case event == 0:
		m.restart(t)
	case event == 1 && len(m.held) > 0:
		m.giveBack(t, pick(), rapid.Bool().Draw(t, "started"))
	case event <= 4 && len(m.queued) > 0:
		m.assign(t)
	case len(m.held) > 0:
		m.finish(t, pick(), rapid.SampledFrom(ends).Draw(t, "status"))
	case m.x.Done() && m.x.Counts().Failed > 0 && event == 9:
		clear(m.cancelled)
		m.tell(t, execution.Record{Resumed: true})
	}
	m.tellLate(t)
	m.release(t)
}

// cancel ends a task that is not over; a task that waits for another one of its job ends once it no longer waits.
func (m *machine) cancel(t *rapid.T) {
	i := rapid.IntRange(0, len(m.spec.Tasks)-1).Draw(t, "cancelled")
	open, err := execution.Cancellable(m.x, []int{i})
	if err != nil || len(open) == 0 {
		return
	}
	waits := slices.ContainsFunc(m.held, func(j execution.Job) bool {
		return slices.ContainsFunc(j.Tasks, func(task execution.Task) bool { return task.Index == i })
	}) && slices.ContainsFunc(m.spec.Graph.Parents(i), func(p int) bool { return !m.done[int32(p)] })
	m.cancelled[int32(i)] = true
	m.tell(t, execution.Record{Cancelled: &execution.Cancellation{Tasks: open, Why: "asked"}})
	if now := m.x.Task(i).State; !waits && now != corral.TaskFailed {
		t.Fatalf("task %d was cancelled, and is %s", i, now)
	}
}

// retry retries a failed task.
func (m *machine) retry(t *rapid.T) {
	i := rapid.SampledFrom(m.x.Failed()).Draw(t, "retried")
	failed, err := execution.Retriable(m.x, []int{i})
	if err != nil || len(failed) != 1 {
		t.Fatalf("task %d failed, and may not be tried again: %v, %v", i, failed, err)
	}
	delete(m.cancelled, int32(i))
	m.tell(t, execution.Record{Retried: failed})
	if s := m.x.Task(i).State; s == corral.TaskFailed {
		t.Fatalf("task %d is tried again, and %s", i, s)
	}
}

// drain lets all remaining tasks succeed.
func (m *machine) drain(t *rapid.T) {
	for !m.x.Done() {
		m.release(t)
		if len(m.queued) == 0 && len(m.held) == 0 {
			t.Fatalf("nothing is released and nothing runs: %+v", m.x.Counts())
		}
		for len(m.queued) > 0 {
			m.assign(t)
		}
		for len(m.held) > 0 {
			m.finish(t, 0, execution.Done)
		}
	}
}

// anySpec draws a small workflow.
func anySpec(t *rapid.T) execution.Spec {
	var s execution.Spec
	retries := rapid.IntRange(0, 1).Draw(t, "retries")
	var edges [][2]int
	for i := range rapid.IntRange(1, 12).Draw(t, "tasks") {
		s.Tasks = append(s.Tasks, execution.TaskSpec{
			ID: fmt.Sprintf("t%d", i), CPUs: rapid.IntRange(1, 2).Draw(t, "cpus"), Estimate: time.Second, Retries: retries,
			Kind: rapid.Int32Range(0, 2).Draw(t, "kind"), MemoryMiB: rapid.SampledFrom([]int{0, 100}).Draw(t, "memory"),
		})
		for parent := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				edges = append(edges, [2]int{parent, i})
			}
		}
	}
	g, err := dag.New(len(s.Tasks), edges)
	if err != nil {
		t.Fatal(err)
	}
	s.Graph = g
	s.Clusters = anyClusters(t, s)
	return s
}

// anyClusters draws which tasks share a job: those of a level, those of a chain, those with a label, or none.
func anyClusters(t *rapid.T, s execution.Spec) [][]int {
	switch rapid.IntRange(0, 3).Draw(t, "clustering") {
	case 1:
		return byLevel(s, rapid.IntRange(1, 2).Draw(t, "groups"))
	case 2:
		return dag.Chains(s.Graph, nil)
	case 3:
		labels := make([]int, len(s.Tasks))
		for i := range labels {
			labels[i] = rapid.IntRange(-1, 2).Draw(t, "label")
		}
		return dag.ByLabel(s.Graph, labels)
	}
	return nil
}

// For any order of a cluster's events, and wherever corrald is killed: the replayed execution equals the live one, no
// task runs before its parents are done or after it is done, no attempt number is used twice, and everything ends.
func TestExecutionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := anySpec(t)
		m := &machine{
			spec: spec, x: execution.New(spec), workers: map[int64]string{}, ran: map[part]bool{}, done: map[int32]bool{},
			stopped: map[int64]bool{}, cancelled: map[int32]bool{}, parts: map[int64][]part{},
		}
		m.release(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			m.step(t)
		}
		m.drain(t)
		m.restart(t)
	})
}
