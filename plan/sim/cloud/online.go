package cloud

import (
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// An online is the simulation of a scenario on machines that a policy requests.
type online struct {
	*world
	policy ensemble.Strategy
	books  *books
	free   *free
	ready  heap.Heap[place]
	queued int64
	alive  int       // number of machines that have not ended
	own    *assigned // nil if tasks are not bound to machines
}

// A place is the position of a ready task in the queue.
type place struct {
	key, number int64
	task        int32
}

// Online simulates a scenario with the machines and workflows that a policy chooses. A free slot runs the ready task
// with the smallest place; if several tasks have the same place, it runs the task that was ready first.
func Online(s Scenario, policy ensemble.Strategy) Outcome {
	w := newWorld(&s)
	x := &online{world: w, policy: policy, books: newBooks(s.Ensemble, s.Machines.slots()), free: newFree(w),
		ready: heap.New(func(a, b place) bool { return a.key < b.key || a.key == b.key && a.number < b.number })}
	if a, ok := policy.(Assigner); ok {
		x.own = newAssigned(x, a)
	}
	for task, n := range x.missing {
		if n == 0 {
			x.queue(int32(task))
		}
	}
	x.happens(0, event{kind: step})
	for x.events.Len() > 0 {
		x.instant()
	}
	return x.outcome()
}

// instant handles all events of the next instant.
func (x *online) instant() {
	x.now = x.events.First().at
	look := false
	for x.events.Len() > 0 && x.events.First().at == x.now {
		switch e := x.events.Pop(); e.kind {
		case taskEnds:
			x.end(e)
		case machineReady:
			if m := &x.machines[e.machine]; !m.ended {
				m.ready = true
				x.offer(e.machine)
			}
		case machineEnds:
			x.stop(e.machine)
		case step:
			look = true
		}
	}
	x.dispatch()
	if look {
		x.look()
	}
}

// look calls the policy and executes its orders.
func (x *online) look() {
	orders := x.policy.Step(x.view())
	for _, id := range orders.Stop {
		x.stop(int32(id))
	}
	x.ask(orders.Start)
	x.dispatch()
	if x.alive > 0 || x.books.open > 0 && x.now <= x.Deadline {
		x.happens(max(orders.Next, x.now+time.Millisecond), event{kind: step})
	}
}

func (x *online) ask(n int) {
	for range n {
		if x.Machines.Most > 0 && x.alive >= x.Machines.Most {
			return
		}
		x.world.ask(len(x.machines))
		x.alive++
	}
}

func (x *online) stop(id int32) {
	if !x.machines[id].ended {
		x.alive--
	}
	for _, r := range x.world.stop(id) {
		x.queue(r.task)
	}
}

// offer marks a machine as having a free slot.
func (x *online) offer(id int32) {
	x.free.offer(id)
	if x.own != nil {
		x.own.touched = append(x.own.touched, id)
	}
}

// queue marks a task as ready.
func (x *online) queue(task int32) {
	x.queued++
	k, t := x.names(task)
	if x.own != nil {
		if !x.admitted(task) {
			return
		}
		id, _ := x.own.policy.Own(k, t)
		x.own.waiting[task] = true
		x.own.touched = append(x.own.touched, int32(id))
	}
	x.ready.Push(place{x.policy.Place(k, t), x.queued, task})
}

// end handles the end of a task: the children of a successful task may begin; a failed task may begin again.
func (x *online) end(e event) {
	if !x.ended(e) {
		return
	}
	x.offer(e.machine)
	if e.failed {
		x.queue(e.task)
		return
	}
	x.books.end(x.estimate(e.task))
	x.released(e.task, x.queue)
	if k := x.of[e.task]; x.left[k] == 0 { // part of the budget may have been freed
		for _, task := range x.books.again() {
			x.queue(task)
		}
	}
}

// dispatch assigns ready tasks to free slots.
func (x *online) dispatch() {
	if x.now >= x.Deadline {
		return
	}
	if x.own != nil {
		x.own.dispatch()
		return
	}
	var misfits []place
	for x.ready.Len() > 0 && x.free.any() {
		p := x.ready.Pop()
		if !x.admitted(p.task) {
			continue
		}
		id, ok := x.free.take(x.estimate(p.task))
		if !ok {
			misfits = append(misfits, p)
			continue
		}
		x.begin(p.task, id)
		x.free.offer(id)
	}
	for _, p := range misfits {
		x.ready.Push(p)
	}
}

// admitted reports whether a task's workflow was begun, and asks the policy if it has not decided on that workflow. If
// the workflow was not begun, the task is set aside.
func (x *online) admitted(task int32) bool {
	k := int(x.of[task])
	if x.books.standing[k] == unasked {
		verdict := x.policy.Admit(x.view(), x.books.claim(k))
		x.out.Reasons[k] = verdict.Reason
		x.books.decide(k, verdict)
	}
	if x.books.standing[k] != begun {
		x.books.aside[k] = append(x.books.aside[k], task)
		return false
	}
	return true
}

// view returns the current state for the policy.
func (x *online) view() ensemble.View {
	v := ensemble.View{Now: x.now, Ended: x.out.Cost, Asked: len(x.machines), Over: x.books.open == 0}
	for id := range x.machines {
		m := &x.machines[id]
		if m.ended {
			continue
		}
		v.Machines = append(v.Machines, ensemble.Instance{ID: id, From: m.From, Held: x.billed(m), Ready: m.ready,
			Slots: x.Machines.slots(), Busy: len(m.tasks)})
	}
	return v
}
