package cloud

import (
	"slices"
	"time"
)

// free is the queue of free slots: the slot that has been free for the longest time is the first. An entry of a machine
// that has ended is dropped when it is examined.
type free struct {
	*world
	queue  []int32 // a machine for each of its free slots
	queued []int   // :: machine → number of its entries in queue
}

func newFree(w *world) *free { return &free{world: w} }

func (f *free) has(id int32) bool {
	m := &f.machines[id]
	return m.ready && !m.ended && len(m.tasks) < f.Machines.slots()
}

// offer adds the free slots of a machine that are not in the queue.
func (f *free) offer(id int32) {
	for len(f.queued) <= int(id) {
		f.queued = append(f.queued, 0)
	}
	m := &f.machines[id]
	for m.ready && !m.ended && len(m.tasks)+f.queued[id] < f.Machines.slots() {
		f.queue = append(f.queue, id)
		f.queued[id]++
	}
}

// remove removes entry i.
func (f *free) remove(i int) {
	f.queued[f.queue[i]]--
	if i == 0 {
		f.queue = f.queue[1:]
		return
	}
	f.queue = append(f.queue[:i], f.queue[i+1:]...)
}

// drop removes the first entry of a machine, if there is one.
func (f *free) drop(id int32) {
	if i := slices.Index(f.queue, id); i >= 0 {
		f.remove(i)
	}
}

// any reports whether there is a machine with a free slot.
func (f *free) any() bool {
	for len(f.queue) > 0 && f.machines[f.queue[0]].ended {
		f.remove(0)
	}
	return len(f.queue) > 0
}

// first returns the machine of the first free slot; any must have returned true.
func (f *free) first() int32 { return f.queue[0] }

// take removes the first slot whose machine will last for at least the given time, and returns the machine.
func (f *free) take(estimate time.Duration) (id int32, ok bool) {
	for i := 0; i < len(f.queue); {
		if f.machines[f.queue[i]].ended {
			f.remove(i)
			continue
		}
		id = f.queue[i]
		if end := f.Machines.Ends; end == 0 || f.now+estimate <= f.machines[id].Ready+end {
			f.remove(i)
			return id, true
		}
		i++
	}
	return 0, false
}
