package slot

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Change adds a number of free processors, or takes them if the number is negative, in an interval.
type Change struct {
	From, To time.Duration
	Free     int
}

// With returns a copy of the profile with all changes, which is much faster than many calls of Take and Give. It panics
// if more processors are taken than are free, or more are given than the machine has, which is a bug in the caller.
func (p *Profile) With(changes []Change) *Profile {
	all := make([]step, 0, len(p.steps)+2*len(changes)) // differences of the number of free processors
	before := 0
	for _, s := range p.steps {
		all = append(all, step{s.at, s.free - before})
		before = s.free
	}
	for _, c := range changes {
		from := max(c.From, p.steps[0].at)
		if c.To <= from {
			continue
		}
		all = append(all, step{from, c.Free})
		if c.To < Forever {
			all = append(all, step{c.To, -c.Free})
		}
	}
	slices.SortFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	with, free := &Profile{processors: p.processors}, 0
	for i, s := range all {
		free += s.free
		if i+1 < len(all) && all[i+1].at == s.at {
			continue
		}
		if free < 0 || free > p.processors {
			panic(fmt.Sprintf("slot: %d of %d processors are free at %s", free, p.processors, s.at))
		}
		if k := len(with.steps); k == 0 || with.steps[k-1].free != free {
			with.steps = append(with.steps, step{s.at, free})
		}
	}
	return with
}
