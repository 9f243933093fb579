package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
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
	p.leaveOut(waiting)
	wait, of := 0, []Site{} // jobs that no site can serve now, and the sites that could at another time
	for i := range waiting {
		for w := &waiting[i]; w.Jobs > 0; {
			if p.full() {
				p.limitJobs(wait + count(waiting[i:]))
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
		p.limitJobs(wait)
	}
	p.keepMinimum()
}

// keepMinimum asks for workers that need no work to stay.
func (p *purchase) keepMinimum() {
	for p.held < p.scale.Min && !p.full() {
		if _, ok := p.order(Ask{Keep: true}, corral.Resources{}); !ok {
			p.limitSites(p.sites)
			return
		}
	}
}

// leaveOut takes the jobs out that no worker of these terms at any of the sites could take, and says why.
func (p *purchase) leaveOut(waiting []matching.Class) {
	jobs := map[string]int{} // :: why → so many
	var reasons []string
	for i := range waiting {
		w := &waiting[i]
		why := p.impossible(w.Needs)
		if w.Jobs == 0 || why == "" {
			continue
		}
		if jobs[why] == 0 {
			reasons = append(reasons, why)
		}
		jobs[why] += w.Jobs
		w.Jobs = 0
	}
	for _, why := range reasons {
		p.limit("%s %s", counted(jobs[why], "job needs", "jobs need"), why)
	}
}

// impossible says what such jobs need that no worker has; empty: some worker may have it.
func (p *purchase) impossible(needs matching.Resources) string {
	switch {
	case needs.CPUs > p.scale.CPUs:
		return fmt.Sprintf("%d cpus: workers have %d (--cpus)", needs.CPUs, p.scale.CPUs)
	case needs.Time > p.longest:
		return fmt.Sprintf("%s: workers of %s take none above %s (--walltime)", needs.Time, p.scale.Walltime, p.longest)
	case len(p.fitting(needs.Resources)) == 0:
		return fmt.Sprintf("%s: %s", needs.Resources, p.largest(needs.Resources))
	}
	return ""
}

// takers names the hosts at which a worker may have what a job needs; without one, what it has too much of. Two jobs of
// which it says the same find the same hosts, and so does one that needs the most of each.
func (p *purchase) takers(needs matching.Resources) string {
	switch {
	case needs.CPUs > p.scale.CPUs:
		return "cpus"
	case needs.Time > p.longest:
		return "time"
	}
	var fit []byte // of each host whether it does
	for _, s := range p.sites {
		for _, h := range s.Hosts {
			fit = strconv.AppendBool(fit, h.CPUs >= p.scale.CPUs && needs.FitIn(h))
		}
	}
	return string(fit)
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

// serve asks for a worker for the first of the classes that wait, with as many others as it has room for. It takes out
// what the worker is for. The worker's memory, gpus and disk are what that needs.
func (p *purchase) serve(waiting []matching.Class) bool {
	host, ok := p.order(Ask{}, waiting[0].Needs.Resources)
	if ok {
		room := Room{host, p.longest}
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
	p.limit("the maximum of %s is reached: %s held", counted(p.scale.Max, "cpu", "cpus"), counted(p.held, "is", "are"))
	return true
}

// order asks the first site that takes another pilot, and has a host for such a job, for a worker. It returns the host.
func (p *purchase) order(a Ask, job corral.Resources) (host corral.Resources, ok bool) {
	for i := range p.sites {
		s := &p.sites[i]
		if host, ok = s.room(p.scale.CPUs, job); ok && s.Closed == "" && s.Pilots > 0 {
			s.Pilots--
			a.Site, p.held = s.Name, p.held+p.scale.CPUs
			p.asks = append(p.asks, a)
			return host, true
		}
	}
	return corral.Resources{}, false
}

func (p *purchase) limit(format string, args ...any) {
	p.limits = append(p.limits, fmt.Sprintf(format, args...))
}

func (p *purchase) limitJobs(n int) { p.limit("%s on", counted(n, "job waits", "jobs wait")) }

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
	words, has := [4][2]string{{"cpu", "cpus"}, {"MiB of memory", "MiB of memory"}, {"gpu", "gpus"},
		{"MiB of disk", "MiB of disk"}}, components(host)
	for i, need := range components(needs) {
		if need > 0 && has[i] != corral.Unlimited {
			said = append(said, counted(has[i], words[i][0], words[i][1]))
		}
	}
	return strings.Join(said, " and ")
}
