package cloud

import (
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
)

// free holds the machines that may have a free slot, in the order of their requests. A machine without a free slot is
// removed when it reaches the front.
type free struct {
	*world
	ids  heap.Heap[int32]
	here map[int32]bool
}

func newFree(w *world) *free {
	return &free{world: w, ids: heap.Ordered[int32](), here: map[int32]bool{}}
}

func (f *free) has(id int32) bool {
	m := &f.machines[id]
	return m.ready && !m.ended && len(m.tasks) < f.Machines.slots()
}

// offer adds a machine if it has a free slot.
func (f *free) offer(id int32) {
	if f.has(id) && !f.here[id] {
		f.here[id] = true
		f.ids.Push(id)
	}
}

func (f *free) pop() int32 {
	id := f.ids.Pop()
	f.here[id] = false
	return id
}

// any reports whether there is a machine with a free slot.
func (f *free) any() bool {
	for f.ids.Len() > 0 && !f.has(f.ids.First()) {
		f.pop()
	}
	return f.ids.Len() > 0
}

// take removes and returns the first machine that will last for at least the given time.
func (f *free) take(estimate time.Duration) (id int32, ok bool) {
	var short []int32
	for !ok && f.any() {
		id = f.pop()
		if end := f.Machines.Ends; end == 0 || f.now+estimate <= f.machines[id].Ready+end {
			ok = true
		} else {
			short = append(short, id)
		}
	}
	for _, m := range short {
		f.offer(m)
	}
	return id, ok
}
