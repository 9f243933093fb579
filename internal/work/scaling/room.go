package scaling

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A Room is what is free of a worker. A component of which nothing is known is Unlimited: a job is taken to fit there,
// since a worker that is there may be all it needs.
type Room struct {
	Free corral.Resources
	Left time.Duration // the longest job that it takes
}

// filled is what a room was given.
type filled struct {
	jobs    int
	guessed int // of them, those that need something of which it is not known how much is free
	used    corral.Resources
}

// fill takes as many jobs as the room has place for, in their order, out of waiting.
func (r *Room) fill(waiting []matching.Class) (f filled) {
	for i := range waiting {
		w := &waiting[i]
		if w.Jobs == 0 || w.Needs.Time > r.Left {
			continue
		}
		n := min(w.Jobs, times(w.Needs.Resources, r.Free))
		if n == 0 {
			continue
		}
		w.Jobs -= n
		used := multiple(w.Needs.Resources, n)
		f.jobs, f.used = f.jobs+n, f.used.Plus(used)
		if unknown(w.Needs.Resources, r.Free) {
			f.guessed += n
		}
		r.Free = less(r.Free, used)
	}
	return f
}

// The functions below look at resources component by component.

func components(r corral.Resources) [4]int { return [4]int{r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB} }

func resources(c [4]int) corral.Resources {
	return corral.Resources{CPUs: c[0], MemoryMiB: c[1], GPUs: c[2], DiskMiB: c[3]}
}

// times is how often needs fit into room.
func times(needs, room corral.Resources) int {
	n, has := corral.Unlimited, components(room)
	for i, need := range components(needs) {
		if need > 0 {
			n = min(n, max(0, has[i])/need)
		}
	}
	return n
}

func multiple(r corral.Resources, n int) corral.Resources {
	c := components(r)
	for i := range c {
		c[i] *= n
	}
	return resources(c)
}

// less is what is left of a room. What is Unlimited stays so.
func less(room, used corral.Resources) corral.Resources {
	c := components(room)
	for i, u := range components(used) {
		if c[i] != corral.Unlimited {
			c[i] -= u
		}
	}
	return resources(c)
}

// least is the smaller of each component.
func least(a, b corral.Resources) corral.Resources {
	c := components(a)
	for i, other := range components(b) {
		c[i] = min(c[i], other)
	}
	return resources(c)
}

// unknown reports whether something is needed of which the room is not known to have enough.
func unknown(needs, room corral.Resources) bool {
	has := components(room)
	for i, need := range components(needs) {
		if need > 0 && has[i] == corral.Unlimited {
			return true
		}
	}
	return false
}
