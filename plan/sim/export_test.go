package sim

import "github.com/corral-pilot/corral"

// RunNamed is Run with given names for pilots' jobs, because workers get jobs in the order of their names.
func RunNamed(s Scenario, tag func(corral.JobID) string) *Trace {
	x := begin(s)
	x.tag = tag
	return x.play()
}
