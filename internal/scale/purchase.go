package scale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/matching"
)

// A purchase is the workers that are asked for at one look.
type purchase struct {
	scale   corral.Scale
	longest time.Duration // the longest job that a worker takes
	sites   []Site
	held    int // cpus
	asks    []Ask
	limits  []string
}

// buy asks for workers for what waits and fits one, then for what the minimum lacks. A class that no site can serve
// now stands back for those after it.
func (p *purchase) buy(waiting []matching.Class) {
	for i := range waiting {
		if w := &waiting[i]; w.Jobs > 0 && !p.possible(*w) {
			w.Jobs = 0
		}
	}
	wait, of := 0, []Site{} // jobs that no site can serve now, and the sites that could at another time
	for i := range waiting {
		for w := &waiting[i]; w.Jobs > 0; {
			if p.full() {
				p.limit("%d jobs wait on", wait+count(waiting[i:]))
				return
			}
			if p.serve(waiting[i:]) {
				continue
			}
			wait, of, w.Jobs = wait+w.Jobs, append(of, p.fitting(w.Needs.Resources)...), 0
		}
	}
	if wait > 0 {
		p.limitSites(of)
		p.limit("%d jobs wait on", wait)
	}
	p.keepMinimum()
}

func (p *purchase) keepMinimum() {
	for p.held < p.scale.Min && !p.full() {
		if !p.ask(Ask{Keep: true}, func(*Site) bool { return true }) {
			p.limitSites(p.sites)
			return
		}
	}
}

// possible reports whether a worker of these terms at one of the sites could take such a job, and says why if none
// could.
func (p *purchase) possible(w matching.Class) bool {
	var why string
	switch {
	case w.Needs.CPUs > p.scale.CPUs:
		why = fmt.Sprintf("need %d cpus: workers have %d (--cpus)", w.Needs.CPUs, p.scale.CPUs)
	case w.Needs.Time > p.longest:
		why = fmt.Sprintf("take %s: workers of %s take none above %s (--walltime)", w.Needs.Time, p.scale.Walltime,
			p.longest)
	case len(p.fitting(w.Needs.Resources)) == 0:
		why = fmt.Sprintf("need %s each: %s", w.Needs.Resources, p.largest(w.Needs.Resources))
	}
	if why != "" {
		p.limit("%d jobs %s", w.Jobs, why)
	}
	return why == ""
}

// fitting are the sites at which a worker may have what a job needs.
func (p *purchase) fitting(needs corral.Resources) (all []Site) {
	for _, s := range p.sites {
		if _, ok := s.room(p.scale.CPUs, needs); ok {
			all = append(all, s)
		}
	}
	return all
}

// serve asks for a worker for the first of the classes that wait, with as many others as it has room for, at the first
// site that takes one. It takes out what the worker is for. The worker's memory, gpus and disk are what that needs.
func (p *purchase) serve(waiting []matching.Class) bool {
	room := Room{Left: p.longest}
	ok := p.ask(Ask{}, func(s *Site) (fits bool) {
		room.Free, fits = s.room(p.scale.CPUs, waiting[0].Needs.Resources)
		return fits
	})
	if ok {
		p.asks[len(p.asks)-1].Needs = room.fill(waiting).used
	}
	return ok
}

// room is what a worker of so many cpus may have at the site whose host can take this job; not ok if none can.
func (s Site) room(cpus int, job corral.Resources) (host corral.Resources, ok bool) {
	if len(s.Hosts) == 0 {
		return corral.Resources{CPUs: cpus, MemoryMiB: corral.Unlimited, GPUs: corral.Unlimited,
			DiskMiB: corral.Unlimited}, true
	}
	for _, h := range s.Hosts {
		if h.CPUs >= cpus {
			h.CPUs = cpus
			if job.FitIn(h) {
				return h, true
			}
		}
	}
	return corral.Resources{}, false
}

// full reports whether the maximum leaves no room for another worker.
func (p *purchase) full() bool {
	if p.held+p.scale.CPUs <= p.scale.Max {
		return false
	}
	p.limit("the maximum of %d cpus is reached: %d are held", p.scale.Max, p.held)
	return true
}

// ask asks the first site that takes another pilot, of those that will do.
func (p *purchase) ask(a Ask, willDo func(*Site) bool) bool {
	for i := range p.sites {
		if s := &p.sites[i]; s.Closed == "" && s.Pilots > 0 && willDo(s) {
			s.Pilots--
			a.Site, p.held = s.Name, p.held+p.scale.CPUs
			p.asks = append(p.asks, a)
			return true
		}
	}
	return false
}

func (p *purchase) limit(format string, args ...any) {
	p.limits = append(p.limits, fmt.Sprintf(format, args...))
}

// limitSites says why sites take nothing more, each once.
func (p *purchase) limitSites(sites []Site) {
	for _, s := range sites {
		why := fmt.Sprintf("site %s %s", s.Name, cmp.Or(s.Closed, "takes no more pilots by its limits"))
		if !slices.Contains(p.limits, why) {
			p.limits = append(p.limits, why)
		}
	}
}

// mostReasons bounds a report: a queue may have as many kinds of jobs as it has jobs.
const mostReasons = 8

// reasons are the limits that cut what was asked for.
func (p *purchase) reasons() []string {
	if more := len(p.limits) - mostReasons; more > 0 {
		last := p.limits[len(p.limits)-1]
		return append(p.limits[:mostReasons-1:mostReasons-1], fmt.Sprintf("and %d reasons more", more), last)
	}
	return p.limits
}

// largest says what the largest hosts of each site have of what a job needs.
func (p *purchase) largest(needs corral.Resources) string {
	var all []string
	for _, s := range p.sites {
		var hosts []string
		for _, h := range s.Hosts {
			if said := hasOf(h, needs); !slices.Contains(hosts, said) {
				hosts = append(hosts, said)
			}
		}
		all = append(all, fmt.Sprintf("the largest host of site %s has %s", s.Name, strings.Join(hosts, ", or ")))
	}
	return strings.Join(all, ", ")
}

// hasOf names what a host has of each component that is needed, as far as it is known.
func hasOf(host, needs corral.Resources) string {
	var said []string
	for _, c := range []struct {
		needs, has int
		of         string
	}{
		{needs.CPUs, host.CPUs, "cpus"}, {needs.MemoryMiB, host.MemoryMiB, "MiB of memory"},
		{needs.GPUs, host.GPUs, "gpus"}, {needs.DiskMiB, host.DiskMiB, "MiB of disk"},
	} {
		if c.needs > 0 && c.has != corral.Unlimited {
			said = append(said, fmt.Sprintf("%d %s", c.has, c.of))
		}
	}
	return strings.Join(said, " and ")
}
