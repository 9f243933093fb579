package planner

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/bound"
)

// lowerBound returns a number of cpus such that with fewer no plan can meet the goal's deadline, or nil without a
// deadline or if it cannot be met with any number. The time begins when the first pilot can have its workers in the
// cluster, see earliest.
func (p *planning) lowerBound() *int {
	if p.Goal.Deadline <= 0 {
		return nil
	}
	cpus, ok := bound.CPUs(p.Problem, p.earliest(), time.Duration(p.Goal.Deadline))
	if !ok {
		return nil
	}
	return &cpus
}

// earliest is the earliest time at which a pilot can be ready: the overhead of its site after the shortest wait there,
// of a host with one cpu and of the hosts that the planner tries, each for the shortest walltime and for the longest.
// It takes for granted that in one queue a pilot that is larger and longer than another does not wait less.
func (p *planning) earliest() time.Duration {
	first := time.Duration(math.MaxInt64)
	for i := range p.Sites {
		s := &p.Sites[i]
		hosts := []corral.Resources{{CPUs: 1}}
		for _, cpus := range p.hostSizes() {
			if share, ok := p.share(s, cpus); ok {
				hosts = append(hosts, share.host)
			}
		}
		for _, host := range hosts {
			for _, walltime := range []time.Duration{min(shortestWalltime, s.Walltime), s.Walltime} {
				first = min(first, s.Wait(plan.Shape{Hosts: 1, Host: host, Walltime: walltime})+s.Overhead)
			}
		}
	}
	return first
}
