package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Bounds restrict the pilots of a plan beyond the limits of their sites. A zero value restricts nothing.
type Bounds struct {
	MaxCPUs   int            `json:"max_peak_cpus,omitempty"` // held at once, those of present pilots included
	MaxPilots int            `json:"max_pilots,omitempty"`    // requested
	NotBefore corral.Seconds `json:"not_before_s,omitempty"`  // no pilot is submitted earlier
	// NotBefore as an instant, from which it was computed when the plan was made; zero: it is a duration.
	NotBeforeAt time.Time `json:"not_before_at,omitzero"`
	// All pilots are submitted at the beginning, stay until the end, and have the same cpus per host.
	Static bool `json:"static,omitempty"`
}

// PeakBeside returns the maximum number of cpus that pilots hold at once together with the present pilots, over the
// times when any of the pilots is held. Present pilots count from the beginning, even if they have not started.
func PeakBeside(pilots []Pilot, present []Present) (most int) {
	type change struct {
		at        corral.Seconds
		own, cpus int
	}
	now, own := 0, 0
	changes := make([]change, 0, 2*len(pilots)+len(present))
	for _, q := range present {
		n := q.Hosts * q.Host.CPUs
		now += n
		changes = append(changes, change{corral.Seconds(q.End), 0, -n})
	}
	for _, q := range pilots {
		n := q.HeldCPUs()
		changes = append(changes, change{q.Start, n, n}, change{q.End, -n, -n})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.cpus-b.cpus) })
	for _, c := range changes {
		if now, own = now+c.cpus, own+c.own; own > 0 {
			most = max(most, now)
		}
	}
	return most
}
