package cloud

import "github.com/corral-pilot/corral/plan/ensemble"

// A bound is the simulation of a scenario on the machines of a static plan.
type bound struct {
	*world
	plan  []ensemble.Planned
	place []int32 // :: task → its machine; −1 if it is not planned
	next  []int   // :: machine → index of its next task
}

// Bound simulates a static plan as the simulator of Juve 2012 does: each machine is requested at the planned start of
// its first task, runs its tasks in order, each as soon as possible, and ends after the last task. A failed task is
// retried on the same machine. The deadline and the budget are ignored.
func Bound(s Scenario, p ensemble.Plan) Outcome {
	x := &bound{world: newWorld(&s), plan: p.Machines, next: make([]int, len(p.Machines))}
	x.place = make([]int32, len(x.of))
	for i := range x.place {
		x.place[i] = -1
	}
	for id, m := range p.Machines {
		for _, slot := range m {
			x.place[x.task(slot)] = int32(id)
		}
		x.happens(m.Start(), event{kind: step, machine: int32(id)})
	}
	copy(x.out.Reasons, p.Reasons)
	for x.events.Len() > 0 {
		e := x.events.Pop()
		x.now = e.at
		switch e.kind {
		case step:
			x.ask(int(e.machine))
		case machineReady:
			x.machines[e.machine].ready = true
			x.proceed(e.machine)
		case taskEnds:
			x.end(e)
		}
	}
	return x.outcome()
}

// task returns the index of a slot's task.
func (x *bound) task(s ensemble.Turn) int32 { return x.first[s.Workflow] + int32(s.Task) }

// end handles the end of a task.
func (x *bound) end(e event) {
	x.ended(e)
	if e.failed {
		x.next[e.machine]--
	} else {
		x.released(e.task, func(child int32) {
			if id := x.place[child]; id >= 0 {
				x.proceed(id)
			}
		})
	}
	x.proceed(e.machine)
}

// proceed begins a machine's next task if possible, or ends the machine after its last task.
func (x *bound) proceed(id int32) {
	if int(id) >= len(x.machines) {
		return // not requested yet
	}
	m := &x.machines[id]
	if !m.ready || m.ended || len(m.tasks) > 0 {
		return
	}
	if x.next[id] == len(x.plan[id]) {
		x.stop(id)
		return
	}
	if task := x.task(x.plan[id][x.next[id]]); x.missing[task] == 0 {
		x.next[id]++
		x.begin(task, id)
	}
}
