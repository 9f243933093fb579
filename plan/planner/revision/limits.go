package revision

import (
	"fmt"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
)

// bounds returns what the bounds of the plan leave to further pilots, with times from now. If they allow none, full is
// the bound that does not.
func (o *outlook) bounds() (left plan.Bounds, full string) {
	left = o.Goal.Bounds
	left.NotBefore = max(0, left.NotBefore-corral.Seconds(o.Now))
	if left.MaxPilots > 0 {
		if left.MaxPilots -= len(o.Pilots); left.MaxPilots <= 0 {
			return left, fmt.Sprintf("--max-pilots %d: all of them were requested", o.Goal.MaxPilots)
		}
	}
	if left.MaxCPUs > 0 {
		for _, q := range o.Pilots {
			if q.Phase == Leaving { // it is not among the present pilots of the problem
				left.MaxCPUs -= q.HeldCPUs()
			}
		}
		if left.MaxCPUs <= 0 {
			return left, fmt.Sprintf("--max-cpus %d: released pilots still hold as many", o.Goal.MaxCPUs)
		}
	}
	return left, ""
}

// full checks, if no pilots are added, whether the limits of sites are the reason, that is, whether more pilots would
// help without these limits.
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

// limits describes the limits of sites that are below the given number of cpus.
func limits(sites []plan.Site, cpus int) (all []string) {
	for _, s := range sites {
		switch {
		case s.Pilots < plan.Unlimited && s.Pilots*min(s.Hosts, cpus)*s.Host.CPUs < min(s.CPUs, cpus):
			all = append(all, fmt.Sprintf("site %s accepts %d more pilot(s)", s.Name, s.Pilots))
		case s.CPUs < cpus:
			all = append(all, fmt.Sprintf("site %s provides %d more cpu(s)", s.Name, s.CPUs))
		case s.Left != nil:
			all = append(all, fmt.Sprintf("site %s has %s of its allocation left", s.Name,
				cost.Amount{Money: *s.Left, Unit: s.Tariff.Unit()}))
		}
	}
	return all
}

// limit records the limits that prevent more pilots, and announces them once.
func limit(o *outlook, d *Decision, limits []string) {
	if len(limits) > 0 {
		d.Limits = limits // the cause instead of its consequences
	}
	switch {
	case o.Before.Limited:
		return
	case o.Left > 0:
		d.say("behind: %d task(s) fit no pilot before it leaves, but no more pilots are allowed", o.Left)
	default:
		d.say("behind: it would end after %s, the target is %s, but no more pilots are allowed",
			plan.Beyond(o.Now+o.End, brief(o.target())), brief(o.target()))
	}
	d.News = Limited
}
