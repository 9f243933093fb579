package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// ShapeWaits is the distribution of the wait of pilots with at most CPUs cpus and, unless it is 0, for at most
// Walltime: the shortest wait, the longest, and quantiles at equal distances between them.
type ShapeWaits struct {
	CPUs     int            `json:"cpus"`
	Walltime corral.Seconds `json:"walltime_s,omitempty"` // longer pilots may wait longer: see corral.WalltimeClasses
	Planned  corral.Seconds `json:"planned_s"`            // the wait that the plan assumes
	Waits    Spread         `json:"waits_s"`
}

// waitsOf records the waits of pilots with the same number of cpus, by their walltimes if these matter.
func (s *Site) waitsOf(shapes []Shape) (all []ShapeWaits) {
	for _, shape := range shapes {
		w := ShapeWaits{CPUs: shape.size(), Walltime: corral.Seconds(shape.Walltime),
			Planned: corral.Seconds(s.Wait(shape)),
			Waits:   NewSpread(func(share float64) time.Duration { return s.Quantile(shape, share) })}
		if n := len(all); n > 0 && all[n-1].alike(w) {
			all[n-1].Walltime = w.Walltime
			continue
		}
		all = append(all, w)
	}
	if len(all) == 1 {
		all[0].Walltime = 0
	}
	return all
}

// alike reports whether the waits of two entries are the same.
func (w ShapeWaits) alike(x ShapeWaits) bool {
	return w.Planned == x.Planned && slices.Equal(w.Waits, x.Waits)
}

// of returns the recorded waits of pilots of a shape.
func (q Queue) of(shape Shape) ShapeWaits {
	if len(q.Waits) == 0 {
		return ShapeWaits{}
	}
	i, _ := slices.BinarySearchFunc(q.Waits, min(shape.size(), q.Waits[len(q.Waits)-1].CPUs),
		func(w ShapeWaits, cpus int) int { return cmp.Compare(w.CPUs, cpus) })
	at := q.Waits[i]
	for _, w := range q.Waits[i:] {
		if w.CPUs == at.CPUs && time.Duration(at.Walltime) < shape.Walltime {
			at = w
		}
	}
	return at
}
