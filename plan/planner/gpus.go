package planner

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// gpusFor is how many GPUs are asked for with so many cpus of a host: none if no task needs one; else as large a part
// of the host's as of its cpus, and at least what the task needs that needs most.
func gpusFor(needs []corral.Resources, of corral.Resources, cpus int) int {
	most := 0
	for _, n := range needs {
		most = max(most, n.GPUs)
	}
	if most == 0 || of.GPUs >= plan.Unlimited {
		return most
	}
	return max(most, of.GPUs*cpus/of.CPUs)
}

// withGPUs is how many such hosts a site can give at once, as far as that depends on its GPUs: those who take few cpus
// of a node, each with a GPU, leave cpus to which no GPU belongs.
func withGPUs(s *plan.Site, host corral.Resources) int {
	if host.GPUs == 0 || s.Host.GPUs >= plan.Unlimited || s.CPUs >= plan.Unlimited {
		return plan.Unlimited
	}
	return s.CPUs / s.Host.CPUs * (s.Host.GPUs / host.GPUs)
}
