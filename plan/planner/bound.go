package planner

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/bound"
)

// lowerBound returns a number of cpus below which no plan can meet the goal's deadline. It returns nil if there is no
// deadline or if no number of cpus suffices. Time counts from the instant when the workers of the first pilot can be in
// the cluster, see earliest.
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

// earliest returns the earliest time at which a pilot can be ready: the shortest wait of any site plus its overhead. It
// considers hosts with one cpu and the host sizes that the planner tries, each with the shortest and the longest
// walltime. It assumes that within a queue a larger and longer pilot never waits less than a smaller one.
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
			for _, walltime := range []time.Duration{min(plan.ShortestWalltime, s.Walltime), s.Walltime} {
				first = min(first, s.Wait(plan.Shape{Hosts: 1, Host: host, Walltime: walltime})+s.Overhead)
			}
		}
	}
	return first + time.Duration(p.Goal.NotBefore)
}
