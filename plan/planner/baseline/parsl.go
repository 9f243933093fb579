package baseline

import "math"

// Parsl scales the blocks of an executor by the ratio of slots to tasks (parsl/jobs/strategy.py, htex_auto_scale); a
// block is a pilot. Scaling in, which removes only blocks that have been idle for max_idletime, is represented by the
// method's Idle.
type Parsl struct {
	Init, Min, Max int     // numbers of blocks
	Parallelism    float64 // slots per task, from 0 to 1

	begun bool
}

// DefaultParsl returns the defaults of the providers for batch systems.
func DefaultParsl() *Parsl { return &Parsl{Init: 1, Min: 0, Max: 1, Parallelism: 1} }

// Decide scales out; the case numbers are those of the source.
func (p *Parsl) Decide(s Sight) int {
	tasks, slots, blocks := s.Queued+s.Busy, s.Pilots()*s.Each, s.Pilots()
	first := !p.begun
	p.begun = true
	switch {
	case first && blocks < p.Init:
		return p.Init - blocks
	case tasks == 0: // 1: nothing to do; blocks leave once they have been idle for long enough
		return max(0, p.Min-blocks)
	case blocks >= p.Max: // 2a
		return 0
	case slots == 0: // 3: tasks without any slots
		return 1
	case float64(slots)/float64(tasks) < p.Parallelism: // 2b
		missing := math.Ceil(float64(tasks)*p.Parallelism - float64(slots))
		return min(int(math.Ceil(missing/float64(s.Each))), p.Max-blocks)
	}
	return 0
}
