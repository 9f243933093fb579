package provision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/profile"
)

// alikeSpeed is the minimum speed, as a fraction of the fastest hosts' speed, at which hosts count as equally fast:
// tasks differ by this much by chance.
const alikeSpeed = 0.9

// Speeds returns the speeds of the sites' hosts, based on a profile that contains tasks of the same kinds from several
// sites: the requested profile or, failing that, the profile of earlier runs. It returns nil if nothing is known about
// these sites, or if all hosts are equally fast. Hosts of other sites count as well, because measurements at those
// sites are normalised, whichever site is planned for.
func Speeds(x Experience, sites []string) profile.Speeds {
	for _, p := range []*profile.Profile{x.Given, x.Earlier} {
		if p == nil {
			continue
		}
		speeds := p.Speeds()
		known := slices.ContainsFunc(sites, func(site string) bool {
			return speeds[profile.SiteHosts(site)].Shared > 0
		})
		switch {
		case known && differ(speeds):
			return speeds
		case known:
			return nil
		}
	}
	return nil
}

// differ reports whether hosts differ by more than chance.
func differ(speeds profile.Speeds) bool {
	low, high := 1.0, 1.0 // the reference
	for _, s := range speeds {
		low, high = min(low, s.Factor), max(high, s.Factor)
	}
	return low < alikeSpeed*high
}

// Pace applies the speeds of sites to a problem whose runtimes are for the reference of the speeds, and describes the
// result. An unknown site is as fast as the reference.
func Pace(p *plan.Problem, speeds profile.Speeds) (said []string) {
	if len(speeds) == 0 {
		return nil
	}
	factor := func(site string) float64 { return cmp.Or(speeds[profile.SiteHosts(site)].Factor, 1) }
	top := 0.0
	for _, s := range p.Sites {
		top = max(top, factor(s.Name))
	}
	for _, q := range p.Present {
		top = max(top, factor(q.Site))
	}
	for i := range p.Work.Tasks {
		t := &p.Work.Tasks[i]
		t.Runtime = time.Duration(float64(t.Runtime) / top).Round(time.Millisecond)
	}
	speed := func(site string) corral.Speed {
		if f := factor(site); f < top {
			return corral.Speed(f / top)
		}
		return 0
	}
	for i := range p.Sites {
		p.Sites[i].Speed = speed(p.Sites[i].Name)
	}
	for i := range p.Present {
		p.Present[i].Speed = speed(p.Present[i].Site)
	}
	return compared(p.Sites, speeds)
}

// compared describes how long tasks take at sites, compared with the hosts on which most of them were measured.
func compared(sites []plan.Site, speeds profile.Speeds) (said []string) {
	for i, s := range sites {
		known, ok := speeds[profile.SiteHosts(s.Name)]
		if !ok || i > 0 && sites[i-1].Name == s.Name || known.Factor == 1 { // another queue, or the reference itself
			continue
		}
		said = append(said, fmt.Sprintf("at site %s tasks are assumed to need %.2f × their estimates, as learned from "+
			"%s that ran elsewhere, too", s.Name, 1/known.Factor, counted(known.Shared, "kind")))
	}
	return said
}
