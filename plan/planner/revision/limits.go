package revision

import (
	"fmt"
	"slices"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
)

// full finds out, where nothing is added, whether the limits of sites are why: more would help without them.
func full(o *outlook, d *Decision, goal plan.Goal) error {
	free := o.left
	free.Sites = slices.Clone(o.left.Sites)
	for i := range free.Sites {
		s := &free.Sites[i]
		s.CPUs, s.Pilots, s.Left = plan.Unlimited, plan.Unlimited, nil
	}
	p, err := planner.Make(free, goal, options(o))
	if err != nil || !p.Feasible || !sooner(o, p) {
		return err
	}
	limit(o, d, append(limits(o.left.Sites, p.PeakCPUs), o.Without...))
	return nil
}

// limits says what sites give at most, where that is less than so many cpus.
func limits(sites []plan.Site, cpus int) (all []string) {
	for _, s := range sites {
		switch {
		case s.Pilots < plan.Unlimited && s.Pilots*min(s.Hosts, cpus)*s.Host.CPUs < min(s.CPUs, cpus):
			all = append(all, fmt.Sprintf("site %s takes %d pilot(s) more", s.Name, s.Pilots))
		case s.CPUs < cpus:
			all = append(all, fmt.Sprintf("site %s gives %d cpu(s) more", s.Name, s.CPUs))
		case s.Left != nil:
			all = append(all, fmt.Sprintf("of the allocation at site %s %s are left", s.Name,
				cost.Amount{Money: *s.Left, Unit: s.Tariff.Unit()}))
		}
	}
	return all
}

// limit notes what keeps pilots from being asked for, and says so, once.
func limit(o *outlook, d *Decision, limits []string) {
	if len(limits) > 0 {
		d.Limits = limits // the cause, instead of what follows from it
	}
	switch {
	case o.Before.Limited:
		return
	case o.Left > 0:
		d.say("behind: %d task(s) fit no pilot before it leaves, and more pilots may not be asked for", o.Left)
	default:
		d.say("behind: it would end after %s, wanted is %s, and more pilots may not be asked for",
			plan.Beyond(o.Now+o.End, brief(o.target())), brief(o.target()))
	}
	d.News = Limited
}
