package scaling

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A Room is the free part of a worker. An unknown component is Unlimited: a job is assumed to fit it, because a present
// worker may satisfy all of the job's needs.
type Room struct {
	Free corral.Resources
	Left time.Duration // the longest estimate of a job that the worker accepts
}

// filled holds the jobs assigned to a room.
type filled struct {
	jobs    int
	guessed int // number of these jobs that need a component whose free amount is unknown
	used    corral.Resources
}

// fill moves as many jobs from waiting as the room can hold, in their order.
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

// The functions below process resources component by component.

func components(r corral.Resources) [4]int { return [4]int{r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB} }

func resources(c [4]int) corral.Resources {
	return corral.Resources{CPUs: c[0], MemoryMiB: c[1], GPUs: c[2], DiskMiB: c[3]}
}

// times returns how many times needs fit into room.
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

// less returns the part of a room that is not used. An Unlimited component remains Unlimited.
func less(room, used corral.Resources) corral.Resources {
	c := components(room)
	for i, u := range components(used) {
		if c[i] != corral.Unlimited {
			c[i] -= u
		}
	}
	return resources(c)
}

// least returns the component-wise minimum.
func least(a, b corral.Resources) corral.Resources {
	c := components(a)
	for i, other := range components(b) {
		c[i] = min(c[i], other)
	}
	return resources(c)
}

// unknown reports whether a component is needed whose amount in the room is unknown.
func unknown(needs, room corral.Resources) bool {
	has := components(room)
	for i, need := range components(needs) {
		if need > 0 && has[i] == corral.Unlimited {
			return true
		}
	}
	return false
}
