package cloud

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A world is the common part of both simulations: time, machines, and the progress of tasks. Tasks are numbered
// consecutively across workflows.
type world struct {
	*Scenario
	now     time.Duration
	events  heap.Heap[event]
	planned int64

	first    []int32 // :: workflow → index of its first task, plus one final entry
	of       []int32 // :: task → workflow
	missing  []int32 // :: task → number of unfinished parents
	attempts []int32 // :: task → number of attempts; the end of any but the last is ignored
	left     []int32 // :: workflow → number of tasks that did not end by the deadline
	open     []int32 // :: workflow → number of tasks that have not ended
	machines []machine
	out      Outcome
}

// A machine is the state of one machine; End is set once the machine has ended.
type machine struct {
	Holding
	ready, ended bool
	tasks        []running
}

type running struct {
	task  int32
	since time.Duration
}

// The kinds of events, in the order in which they are handled at an instant.
const (
	taskEnds = iota
	machineReady
	machineEnds
	step
)

// An event is a scheduled event of the simulation; the event of a killed task is ignored.
type event struct {
	at      time.Duration
	number  int64
	kind    uint8
	failed  bool
	machine int32
	task    int32
	attempt int32
}

func newWorld(s *Scenario) *world {
	n := s.Ensemble.Tasks()
	w := &world{Scenario: s, first: make([]int32, 1, len(s.Ensemble)+1), of: make([]int32, 0, n),
		missing: make([]int32, 0, n), attempts: make([]int32, n),
		events: heap.New(func(a, b event) bool {
			return a.at < b.at || a.at == b.at && (a.kind < b.kind || a.kind == b.kind && a.number < b.number)
		})}
	for k, wf := range s.Ensemble {
		for t := range wf.Tasks {
			w.of = append(w.of, int32(k))
			w.missing = append(w.missing, int32(len(wf.Graph.Parents(t))))
		}
		w.first, w.left = append(w.first, int32(len(w.of))), append(w.left, int32(len(wf.Tasks)))
	}
	w.open = slices.Clone(w.left)
	w.out.Reasons, w.out.Ends = make([]string, len(s.Ensemble)), make([]time.Duration, len(s.Ensemble))
	return w
}

func (w *world) happens(at time.Duration, e event) {
	w.planned++
	e.at, e.number = max(at, w.now), w.planned
	w.events.Push(e)
}

// names returns a task's workflow and its index there.
func (w *world) names(task int32) (workflow, number int) {
	workflow = int(w.of[task])
	return workflow, int(task - w.first[workflow])
}

func (w *world) estimate(task int32) time.Duration {
	k, t := w.names(task)
	return w.Ensemble[k].Tasks[t].Runtime
}

// ask requests the machine with the given number; no machine exists for a number that is skipped.
func (w *world) ask(id int) {
	for len(w.machines) <= id {
		w.machines = append(w.machines, machine{})
	}
	var delay time.Duration
	if w.Delay != nil {
		delay = w.Delay(id)
	}
	m := machine{Holding: Holding{Asked: w.now, From: w.now, Ready: w.now + delay}}
	if w.Machines.Queued {
		m.From = m.Ready
	}
	w.machines[id] = m
	w.happens(m.Ready, event{kind: machineReady, machine: int32(id)})
	if w.Machines.Ends > 0 {
		w.happens(m.Ready+w.Machines.Ends, event{kind: machineEnds, machine: int32(id)})
	}
}

// begin starts a task on a machine.
func (w *world) begin(task int32, id int32) {
	m := &w.machines[id]
	m.tasks = append(m.tasks, running{task, w.now})
	k, t := w.names(task)
	took := w.Ensemble[k].Tasks[t].Runtime
	if w.Runtime != nil {
		took = w.Runtime(k, t)
	}
	if w.Speed != nil {
		took = scaled(took, w.Speed(int(id)))
	}
	w.attempts[task]++
	e := event{kind: taskEnds, machine: id, task: task, attempt: w.attempts[task]}
	if w.Fails != nil {
		if at := w.Fails(k, t, int(e.attempt)); at < 1 {
			took, e.failed = scaled(took, at), true
		}
	}
	w.happens(w.now+took, e)
}

// ended records the end of a task, and returns false if the task had been killed.
func (w *world) ended(e event) bool {
	m := &w.machines[e.machine]
	for i, r := range m.tasks {
		if r.task != e.task || w.attempts[e.task] != e.attempt {
			continue
		}
		m.tasks = append(m.tasks[:i], m.tasks[i+1:]...)
		if e.failed {
			w.out.Failed++
			w.out.Lost += w.now - r.since
			return true
		}
		w.out.Work += w.now - r.since
		k, t := w.names(e.task)
		w.out.Last = w.now
		if w.now <= w.Deadline {
			w.out.Makespan = w.now
			w.left[k]--
		}
		if w.open[k]--; w.open[k] == 0 {
			w.out.Ends[k] = w.now
		}
		if w.Record {
			w.out.Ran = append(w.out.Ran, Execution{k, t, int(e.machine), r.since, w.now})
		}
		return true
	}
	return false
}

// released calls then for each task that may begin because the given task has ended.
func (w *world) released(task int32, then func(task int32)) {
	k, t := w.names(task)
	for _, c := range w.Ensemble[k].Graph.Children(t) {
		child := w.first[k] + int32(c)
		if w.missing[child]--; w.missing[child] == 0 {
			then(child)
		}
	}
}

// stop ends a machine and returns the tasks that were running on it.
func (w *world) stop(id int32) []running {
	m := &w.machines[id]
	if m.ended {
		return nil
	}
	m.ended, m.End, m.Unready = true, w.now, !m.ready
	if w.billed(m) {
		m.Cost = w.Terms.Cost(w.now - m.From)
		w.out.Cost = w.out.Cost.Plus(m.Cost)
	}
	killed := m.tasks
	m.tasks = nil
	for _, r := range killed {
		w.out.Killed++
		w.out.Lost += w.now - r.since
	}
	return killed
}

// billed reports whether a machine costs money: a machine that is still queued does not.
func (w *world) billed(m *machine) bool { return m.ready || !w.Machines.Queued }

// outcome returns the result.
func (w *world) outcome() Outcome {
	completed := make([]bool, len(w.left))
	for k, n := range w.left {
		completed[k] = n == 0
	}
	w.out.Completed = ensemble.ScoreOf(completed)
	for _, m := range w.machines {
		w.out.Held = append(w.out.Held, m.Holding)
	}
	return w.out
}
