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

// A ruledMachine drives an execution with rules as a run's driver would, and checks that the rules hold.
type ruledMachine struct {
	spec    execution.Spec
	x       *execution.Execution
	journal []execution.Record
	clock   execution.Msec
	jobs    []execution.Job // released or assigned, with the tasks that have not ended
	given   map[int64]bool  // jobs that were assigned
	calls   []execution.Call
	late    []execution.Call // calls that were given up
}

// anyRules draws the rules of a unit.
func anyRules(t *rapid.T, limits int, task bool) *execution.Rules {
	coin := func(label string) bool { return rapid.IntRange(0, 4).Draw(t, label) == 0 }
	r := &execution.Rules{Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
		Category: rapid.IntRange(0, limits).Draw(t, "category")}
	if !task {
		r.Category = 0 // its tasks may use all categories
	}
	if coin("pre") {
		r.Pre, r.PreSkip = &execution.Script{}, 5
	}
	if coin("post") {
		r.Post = &execution.Script{DeferStatus: 6, DeferAfter: time.Second}
	}
	if coin("unless") {
		r.UnlessExit = []int{2}
	}
	if coin("abort") {
		r.Abort = &execution.Abort{Exit: 3}
	}
	return r
}

// anyRuledSpec draws a small workflow with subworkflows, some of which are nested.
func anyRuledSpec(t *rapid.T) execution.Spec {
	s := execution.Spec{Limits: []int{1, 2}, Losses: 3}
	n := rapid.IntRange(1, 10).Draw(t, "tasks")
	var edges [][2]int
	for i := range n {
		task := execution.TaskSpec{ID: fmt.Sprintf("t%d", i), CPUs: 1, Estimate: time.Second,
			Retries: rapid.IntRange(0, 1).Draw(t, "retries")}
		if rapid.Bool().Draw(t, "ruled") {
			task.Rules = anyRules(t, len(s.Limits), true)
		}
		s.Tasks = append(s.Tasks, task)
		for parent := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				edges = append(edges, [2]int{parent, i})
			}
		}
	}
	if last := &s.Tasks[n-1]; rapid.IntRange(0, 2).Draw(t, "final") == 0 {
		last.Rules = &execution.Rules{Final: true}
		edges = slices.DeleteFunc(edges, func(e [2]int) bool { return e[1] == n-1 })
		for i := range n - 1 {
			edges = append(edges, [2]int{i, n - 1})
		}
	}
	g, err := dag.New(n, edges)
	if err != nil {
		t.Fatal(err)
	}
	s.Graph = g
	if groups := rapid.IntRange(0, 2).Draw(t, "groups"); groups > 0 {
		s.Clusters = byLevel(s, groups)
	}
	if n > 4 && rapid.Bool().Draw(t, "subs") {
		s.Subs = []execution.SubSpec{
			{Name: "s", First: 1, End: 4, Retries: rapid.IntRange(0, 1).Draw(t, "sub retries"), Rules: anyRules(t, 0, false)},
			{Name: "inner", First: 2, End: 4, Job: true, Rules: anyRules(t, 0, false)},
		}
		if s.Check() != nil {
			s.Subs = nil // given the order of their tasks, they wait for themselves
		}
	}
	return s
}

func (m *ruledMachine) tell(r execution.Record) {
	m.clock++
	r.At = m.clock
	m.journal = append(m.journal, r)
	over, kills := m.x.Apply(r), execution.Kills(m.x)
	m.jobs = slices.DeleteFunc(m.jobs, func(j execution.Job) bool {
		return slices.Contains(kills, j.Seq) || slices.Contains(over, j.Seq)
	})
	for _, unit := range execution.UnwantedScripts(m.x) {
		for k, c := range m.calls {
			if c.Unit == unit && !slices.ContainsFunc(m.late, func(l execution.Call) bool { return l == c }) {
				m.late = append(m.late, m.calls[k])
			}
		}
		m.calls = slices.DeleteFunc(m.calls, func(c execution.Call) bool { return c.Unit == unit })
	}
	if back := slices.DeleteFunc(kills, func(seq int64) bool { return slices.Contains(over, seq) }); len(back) > 0 {
		m.tell(execution.Record{Returned: &execution.Giveback{Seqs: back}})
	}
}

// ask cancels a task or retries a failed one.
func (m *ruledMachine) ask(t *rapid.T) {
	i := rapid.IntRange(0, len(m.spec.Tasks)-1).Draw(t, "asked of")
	if failed, err := execution.Retriable(m.x, []int{i}); err == nil && len(failed) > 0 {
		m.tell(execution.Record{Retried: failed})
		if s := m.x.Task(i).State; s == corral.TaskFailed {
			t.Fatalf("task %d is tried again, and %s", i, s)
		}
	} else if open, err := execution.Cancellable(m.x, []int{i}); err == nil && len(open) > 0 {
		m.tell(execution.Record{Cancelled: &execution.Cancellation{Tasks: open, Why: "asked"}})
	}
}

// tellLate records the ends of scripts that were given up: they change nothing.
func (m *ruledMachine) tellLate(t *rapid.T) {
	for _, c := range m.late {
		was := settled(m.spec, m.x)
		m.tell(execution.Record{Script: &execution.ScriptEnd{Unit: c.Unit, Post: c.Post, Try: c.Try, Round: c.Round}})
		if diff := cmp.Diff(was, settled(m.spec, m.x)); diff != "" {
			t.Fatalf("the end of a script that was given up changed something (-before +after):\n%s", diff)
		}
	}
	m.late = nil
}

// release releases jobs, and checks that their tasks may run.
func (m *ruledMachine) release(t *rapid.T) {
	m.clock += execution.Msec(time.Minute.Milliseconds())
	fresh := m.x.Release(m.clock.Time(), execution.Offer{})
	for k, j := range fresh {
		if k > 0 && fresh[k-1].Class < j.Class {
			t.Fatalf("job %d of class %d is released behind one of class %d", j.Seq, j.Class, fresh[k-1].Class)
		}
		for _, task := range j.Tasks {
			m.mayRun(t, task.Index)
		}
	}
	m.jobs = append(m.jobs, fresh...)
	var used [2]int
	for _, j := range m.jobs {
		if r := m.spec.Tasks[j.Tasks[0].Index].Rules; r != nil && r.Category > 0 {
			if used[r.Category-1]++; used[r.Category-1] > m.spec.Limits[r.Category-1] {
				t.Fatalf("category %d has %v jobs: %v", r.Category, used, m.jobs)
			}
		}
	}
	m.calls = append(m.calls, execution.Scripts(m.x, m.clock.Time(), 2)...)
	m.count(t)
}

// mayRun checks that a task does not wait: its parents are done, or a subworkflow succeeded in spite of them, and for a
// final task, all others are over.
func (m *ruledMachine) mayRun(t *rapid.T, i int) {
	final := m.spec.Tasks[i].Rules != nil && m.spec.Tasks[i].Rules.Final
	over := func(s corral.TaskState) bool {
		return s == corral.TaskDone || s == corral.TaskFailed || s == corral.TaskSkipped
	}
	for p := range m.spec.Tasks {
		state := m.x.Task(p).State
		if final && p != i && !over(state) {
			t.Fatalf("final task %d is released while task %d is %s", i, p, state)
		}
	}
	for _, p := range m.spec.Graph.Parents(i) {
		apart := slices.ContainsFunc(m.spec.Subs, func(s execution.SubSpec) bool {
			return s.First <= p && p < s.End && (i < s.First || s.End <= i)
		})
		if state := m.x.Task(p).State; state != corral.TaskDone && !(over(state) && (apart || final)) {
			t.Fatalf("task %d is released while its parent %d is %s", i, p, state)
		}
	}
}

// count compares the counts with the states of the tasks.
func (m *ruledMachine) count(t *rapid.T) {
	c, each := m.x.Counts(), map[corral.TaskState]int{}
	for i := range m.spec.Tasks {
		each[m.x.Task(i).State]++
	}
	want := corral.RunTasks{
		Total: len(m.spec.Tasks), Waiting: each[corral.TaskWaiting], Ready: each[corral.TaskReady],
		Running: each[corral.TaskRunning], Done: each[corral.TaskDone], Failed: each[corral.TaskFailed],
		Skipped: each[corral.TaskSkipped],
	}
	if c != want {
		t.Fatalf("counts %+v, want %+v", c, want)
	}
}

// step performs one event; well means that nothing fails.
func (m *ruledMachine) step(t *rapid.T, well bool) {
	draw := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(t, label) }
	switch event := draw(9, "event"); {
	case event == 8 && !well:
		m.ask(t)
	case event == 0 && !well:
		m.restart(t)
	case event == 1 && m.x.Done() && execution.VerdictOf(m.x).Status != 0:
		m.tell(execution.Record{Resumed: true})
	case event <= 3 && len(m.calls) > 0 || well && len(m.jobs) == 0 && len(m.calls) > 0:
		k := draw(len(m.calls), "call")
		c := m.calls[k]
		m.calls = slices.Delete(m.calls, k, k+1)
		exit := 0
		if !well {
			exit = []int{0, 0, 0, 1, 2, 3, 5, 6}[draw(8, "exit")]
		}
		m.tell(execution.Record{Script: &execution.ScriptEnd{
			Unit: c.Unit, Post: c.Post, Try: c.Try, Round: c.Round, Exit: exit, Ended: m.clock,
		}})
	case len(m.jobs) > 0:
		m.work(t, draw(len(m.jobs), "job"), well)
	}
	m.tellLate(t)
	m.release(t)
}

// work assigns a job, ends one of its tasks, or returns it.
func (m *ruledMachine) work(t *rapid.T, k int, well bool) {
	j := &m.jobs[k]
	if !m.given[j.Seq] {
		m.given[j.Seq] = true
		var parts []part
		for _, task := range j.Tasks {
			parts = append(parts, part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
		}
		m.tell(execution.Record{Assigned: &execution.Assignment{Seq: j.Seq, Worker: "w", Parts: parts}})
		return
	}
	if !well && rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
		seq := j.Seq
		m.jobs = slices.Delete(m.jobs, k, k+1)
		m.tell(execution.Record{Returned: &execution.Giveback{Seqs: []int64{seq}, Started: true, Reason: "lost"}})
		return
	}
	o := &execution.Outcome{Seq: j.Seq, Task: int32(j.Tasks[0].Index), Attempt: int32(j.Tasks[0].Attempt),
		Status: execution.Done, Worker: "w", Started: m.clock, Ended: m.clock + 7}
	if exit := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "exit"); exit != 0 && !well {
		o.Status, o.Exit = execution.Failed, exit
	}
	if j.Tasks = j.Tasks[1:]; len(j.Tasks) == 0 {
		m.jobs = slices.Delete(m.jobs, k, k+1)
	}
	m.tell(execution.Record{Finished: o})
}

// restart replays the journal: only the released jobs and the started scripts may differ.
func (m *ruledMachine) restart(t *rapid.T) {
	again := execution.New(m.spec)
	for _, rec := range m.journal {
		again.Apply(rec)
	}
	execution.Kills(again)
	if diff := cmp.Diff(settled(m.spec, m.x), settled(m.spec, again)); diff != "" {
		t.Fatalf("replayed execution differs (-live +replayed):\n%s", diff)
	}
	m.x, m.calls, m.late = again, nil, nil
	m.jobs = slices.DeleteFunc(m.jobs, func(j execution.Job) bool { return !m.given[j.Seq] })
	m.count(t)
}

// settled describes the state of an execution with rules that must survive a restart. Units that only wait for their
// turn may be ready or waiting.
func settled(spec execution.Spec, x *execution.Execution) any {
	tasks := make([]execution.TaskInfo, len(spec.Tasks))
	for i := range tasks {
		if tasks[i] = x.Task(i); tasks[i].State == corral.TaskWaiting {
			tasks[i].State = corral.TaskReady
		}
	}
	return []any{tasks, x.Failed(), x.Report(time.Unix(0, 0)), x.Expected(), execution.VerdictOf(x)}
}

// For any priorities, categories, scripts, exit statuses, final tasks and subworkflows, and wherever corrald is killed:
// no task is released while it waits, no category exceeds its limit, more urgent units come first, the replayed
// execution equals the live one, and everything ends.
func TestRulesProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := anyRuledSpec(t)
		m := &ruledMachine{spec: spec, x: execution.New(spec), given: map[int64]bool{}}
		m.release(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			m.step(t, false)
		}
		for range 1000 {
			if m.x.Done() {
				m.restart(t)
				return
			}
			if len(m.jobs)+len(m.calls) == 0 {
				if _, ok := m.x.Next(); !ok {
					t.Fatalf("nothing is released and nothing runs: %+v", m.x.Counts())
				}
			}
			m.step(t, true)
		}
		t.Fatalf("it does not come to an end: %+v", m.x.Counts())
	})
}
