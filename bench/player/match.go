package main

import (
	"cmp"
	"slices"
)

// match gives ready tasks to workers: those that leave first are filled first, then those with the least free
// resources, then those that were submitted first. A task so goes to the free place with the least remaining time in
// which it fits.
func (r *run) match() {
	if len(r.queue) == 0 {
		return
	}
	var open []*host // workers with a free cpu, which every task needs
	for _, p := range r.pilots {
		if p.state == serving {
			for _, h := range p.hosts {
				if h.free.CPUs > 0 {
					open = append(open, h)
				}
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *host) int {
		return cmp.Or(cmp.Compare(a.pilot.cut, b.pilot.cut), a.free.CPUs-b.free.CPUs, a.free.GPUs-b.free.GPUs,
			a.free.MemoryMiB-b.free.MemoryMiB, a.pilot.turn-b.pilot.turn)
	})
	for _, h := range open {
		if r.fill(h); len(r.queue) == 0 {
			break
		}
	}
}

// fill gives a worker tasks, the highest rank first, as long as one fits into its free resources and its remaining
// time, with the start margin. Smaller tasks overtake a task that would fit if the worker were empty; after ten seconds
// of that a worker is kept free for the task.
func (r *run) fill(h *host) {
	for h.free.CPUs > 0 && len(r.queue) > 0 {
		at := r.next(h)
		if at < 0 {
			return
		}
		i := r.queue[at]
		r.queue = slices.Delete(r.queue, at, at+1)
		r.release(i)
		r.assign(i, h)
	}
}

// patience is how long a task is overtaken until a worker is kept free for it.
const patience = 10 * second

// next returns the place in the queue of the task that a worker takes next, or -1.
func (r *run) next(h *host) int {
	if i := h.keptFor; i >= 0 {
		if !r.lasts(h, i) {
			r.release(i) // not enough time is left
		} else if r.game.tasks[i].needs.fitIn(h.free) {
			return slices.Index(r.queue, i)
		} else {
			return -1
		}
	}
	passed := -1
	for at, i := range r.queue {
		t := &r.game.tasks[i]
		fits := t.needs.fitIn(h.free)
		if !fits && (passed >= 0 || !t.needs.fitIn(h.pilot.bounded())) || !r.lasts(h, i) {
			continue
		}
		if !fits {
			passed = i
			continue
		}
		if passed >= 0 && r.tasks[passed].since == never {
			r.tasks[passed].since = r.now
		} else if passed >= 0 && r.tasks[passed].kept == nil && r.now-r.tasks[passed].since >= patience {
			r.tasks[passed].kept, h.keptFor = h, passed
			return -1
		}
		return at
	}
	return -1
}

// lasts reports whether a worker stays long enough for a task.
func (r *run) lasts(h *host, i int) bool {
	return r.startOn(h, i)+r.takes(h, i, 1)+r.start <= h.pilot.cut
}

// release forgets that a task was overtaken, and that a worker is kept free for it.
func (r *run) release(i int) {
	t := &r.tasks[i]
	if t.kept != nil {
		t.kept.keptFor = -1
	}
	t.kept, t.since = nil, never
}
