package execution_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/internal/execution"
)

// A part is an attempt at a task.
type part = execution.Part

// A machine drives an execution with what a cluster could tell, and keeps what it told as the journal.
type machine struct {
	spec    execution.Spec
	x       *execution.Execution
	journal []execution.Record
	clock   execution.Msec
	queued  []execution.Job  // released, and no worker has them
	held    []execution.Job  // assigned; of their tasks those that did not end
	workers map[int64]string // :: job → the worker that has it
	ran     map[part]bool    // attempts that may have been running
	done    map[int32]bool   // tasks
}

func (m *machine) now() time.Time { return m.clock.Time() }

// tell applies a record and checks which jobs are said to be over: those of which no task is left.
func (m *machine) tell(t *rapid.T, r execution.Record) {
	m.clock++
	r.At = m.clock
	over := m.x.Apply(r)
	m.journal = append(m.journal, r)
	var want []int64
	m.held = slices.DeleteFunc(m.held, func(j execution.Job) bool {
		if len(j.Tasks) == 0 {
			want = append(want, j.Seq)
		}
		return len(j.Tasks) == 0
	})
	if diff := cmp.Diff(want, over); diff != "" {
		t.Fatalf("jobs that are over after %+v (-want +got):\n%s", r, diff)
	}
	if n := m.x.Jobs(); n != len(m.queued)+len(m.held) {
		t.Fatalf("%d jobs, want %d queued and %d held", n, len(m.queued), len(m.held))
	}
	m.count(t)
}

// count checks the counts against what each task says of itself.
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
	m.clock += execution.Msec(time.Minute.Milliseconds()) // over any back-off
	for _, j := range m.x.Release(m.now(), execution.Offer{}) {
		for _, task := range j.Tasks {
			if i := int32(task.Index); m.done[i] || m.ran[part{Task: i, Attempt: int32(task.Attempt)}] {
				t.Fatalf("task %d is released again as attempt %d", i, task.Attempt)
			}
			for _, parent := range m.spec.Graph.Parents(task.Index) {
				if !m.done[int32(parent)] {
					t.Fatalf("task %d is released before its parent %d is done", task.Index, parent)
				}
			}
		}
		m.queued = append(m.queued, j)
	}
	if at, ok := m.x.Next(); ok {
		t.Fatalf("after a release that let everything go the next is due at %s", at)
	}
	m.count(t)
}

func (m *machine) assign(t *rapid.T) {
	k := rapid.IntRange(0, len(m.queued)-1).Draw(t, "queued")
	j := m.queued[k]
	m.queued = slices.Delete(m.queued, k, k+1)
	var parts []part
	for _, task := range j.Tasks {
		parts = append(parts, part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
		m.ran[parts[len(parts)-1]] = true
	}
	m.held = append(m.held, j)
	workers := []string{fmt.Sprintf("w%d", k%3)}
	if rapid.IntRange(0, 4).Draw(t, "handed back") == 0 { // the cluster gives it to another, and tells only that
		workers = append(workers, "other")
	}
	for _, w := range workers {
		m.workers[j.Seq] = w
		m.tell(t, execution.Record{Assigned: &execution.Assignment{Seq: j.Seq, Worker: w, Parts: parts}})
	}
}

// finish ends the first task of a held job.
func (m *machine) finish(t *rapid.T, k int, status execution.Status) {
	j := &m.held[k]
	task := j.Tasks[0]
	j.Tasks = j.Tasks[1:]
	m.done[int32(task.Index)] = m.done[int32(task.Index)] || status == execution.Done
	r := execution.Record{Finished: &execution.Outcome{
		Seq: j.Seq, Task: int32(task.Index), Attempt: int32(task.Attempt), Status: status,
		Worker: m.workers[j.Seq], Started: m.clock, Ended: m.clock + 7,
	}}
	m.tell(t, r)
	if rapid.Bool().Draw(t, "repeated") {
		before := m.x.Counts()
		m.tell(t, r)
		if after := m.x.Counts(); after != before {
			t.Fatalf("a repeated result changed the counts from %+v to %+v", before, after)
		}
	}
}

func (m *machine) giveBack(t *rapid.T, k int) {
	j := &m.held[k]
	started := rapid.Bool().Draw(t, "started")
	for _, task := range j.Tasks {
		if !started {
			delete(m.ran, part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
		}
	}
	j.Tasks = nil
	back := &execution.Giveback{Seqs: []int64{j.Seq}, Started: started, Reason: "lost"}
	m.tell(t, execution.Record{Returned: back})
}

// restart replaces the execution by one that is replayed from the journal: all but the jobs that no worker has.
func (m *machine) restart(t *rapid.T) {
	again := execution.New(m.spec)
	for _, rec := range m.journal {
		again.Apply(rec)
	}
	if diff := cmp.Diff(lasting(m.spec, m.x), lasting(m.spec, again)); diff != "" {
		t.Fatalf("replayed execution differs (-live +replayed):\n%s", diff)
	}
	m.x, m.queued = again, nil
	m.count(t)
}

// lasting describes what of an execution must survive a restart.
func lasting(spec execution.Spec, x *execution.Execution) any {
	tasks := make([]execution.TaskInfo, len(spec.Tasks))
	for i := range tasks {
		tasks[i] = x.Task(i)
	}
	return []any{tasks, x.Counts(), x.Failed(), x.Report(time.Unix(0, 0)), x.Expected()}
}

func (m *machine) step(t *rapid.T) {
	pick := func() int { return rapid.IntRange(0, len(m.held)-1).Draw(t, "held") }
	ends := []execution.Status{execution.Done, execution.Done, execution.Done, execution.Failed, execution.Cut, execution.Cancelled}
	switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
	case event == 0:
		m.restart(t)
	case event == 1 && len(m.held) > 0:
		m.giveBack(t, pick())
	case event <= 4 && len(m.queued) > 0:
		m.assign(t)
	case len(m.held) > 0:
		m.finish(t, pick(), rapid.SampledFrom(ends).Draw(t, "status"))
	case m.x.Done() && m.x.Counts().Failed > 0 && event == 9:
		m.tell(t, execution.Record{Resumed: true})
	}
	m.release(t)
}

// drain lets everything that is left succeed.
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
	s := execution.Spec{Groups: rapid.IntRange(0, 2).Draw(t, "groups")}
	retries := rapid.IntRange(0, 1).Draw(t, "retries")
	var edges [][2]int
	for i := range rapid.IntRange(1, 12).Draw(t, "tasks") {
		s.Tasks = append(s.Tasks, execution.TaskSpec{
			ID: fmt.Sprintf("t%d", i), CPUs: rapid.IntRange(1, 2).Draw(t, "cpus"), Estimate: time.Second, Retries: retries,
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
	return s
}

// Whatever a cluster tells in whatever order, and wherever corrald is killed: the replayed execution is the
// live one, no task is run that is done or whose parents are not, no attempt number is used twice, and
// everything comes to an end.
func TestExecutionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := anySpec(t)
		m := &machine{
			spec: spec, x: execution.New(spec), workers: map[int64]string{}, ran: map[part]bool{}, done: map[int32]bool{},
		}
		m.release(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			m.step(t)
		}
		m.drain(t)
		m.restart(t)
	})
}
