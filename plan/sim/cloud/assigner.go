package cloud

import (
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// An Assigner is a policy that has planned where and when each task runs. A machine runs the tasks assigned to it in
// the planned order, as early as possible; a task whose planned start has passed runs on any free machine. Machines are
// numbered in the order of their requests.
type Assigner interface {
	ensemble.Strategy
	Own(workflow, task int) (machine int, start time.Duration)
	Tasks(machine int) [][2]int // pairs of workflow and task, in order
}

// An assigned represents the progress of an Assigner's plan.
type assigned struct {
	x       *online
	policy  Assigner
	next    []int   // :: machine → index of its first own task that has not begun
	waiting []bool  // :: task → whether it is ready and has not begun
	touched []int32 // machines that may be able to begin a task of their own
}

func newAssigned(x *online, policy Assigner) *assigned {
	return &assigned{x: x, policy: policy, waiting: make([]bool, len(x.of))}
}

// dispatch begins late tasks on free machines, preferably on the machines assigned to them, and then begins the next
// assigned task of each machine that may have become free.
func (a *assigned) dispatch() {
	for a.x.ready.Len() > 0 && a.x.free.any() {
		p := a.x.ready.First()
		if !a.waiting[p.task] {
			a.x.ready.Pop()
			continue
		}
		if p.key >= int64(a.x.now) {
			break
		}
		a.x.ready.Pop()
		own, _ := a.policy.Own(a.x.names(p.task))
		id := int32(own)
		if own >= len(a.x.machines) || !a.x.free.has(id) {
			id = a.x.free.first()
		}
		a.start(p.task, id)
	}
	for _, id := range a.touched {
		if int(id) < len(a.x.machines) && a.x.free.has(id) {
			a.proceed(id)
		}
	}
	a.touched = a.touched[:0]
}

// proceed begins the next task assigned to a machine if possible.
func (a *assigned) proceed(id int32) {
	for len(a.next) <= int(id) {
		a.next = append(a.next, 0)
	}
	own := a.policy.Tasks(int(id))
	for a.next[id] < len(own) {
		k := own[a.next[id]]
		task := a.x.first[k[0]] + int32(k[1])
		switch {
		case a.waiting[task]:
			a.next[id]++
			a.start(task, id)
			return
		case a.x.attempts[task] > 0: // the task has begun on another machine
			a.next[id]++
		default:
			return
		}
	}
}

func (a *assigned) start(task, id int32) {
	a.waiting[task] = false
	a.x.free.drop(id)
	a.x.begin(task, id)
}
