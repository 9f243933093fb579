package planner

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// gpusFor returns the number of GPUs to request with a number of cpus of a host: none if no task needs one; otherwise
// the same share of the host's GPUs as of its cpus, but at least the maximum that a task needs.
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

// withGPUs returns the number of such hosts that a site's GPUs allow at once. If each host takes a few cpus and a GPU
// of a node, some of the node's cpus are left without a GPU. If the nodes are known, they decide.
func withGPUs(s *plan.Site, host corral.Resources) int {
	if host.GPUs == 0 || len(s.Nodes) > 0 || s.Host.GPUs >= plan.Unlimited || s.CPUs >= plan.Unlimited {
		return plan.Unlimited
	}
	return s.CPUs / s.Host.CPUs * (s.Host.GPUs / host.GPUs)
}
