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

// A purchase collects the workers that are requested in one check.
type purchase struct {
	scale   corral.Scale
	longest time.Duration // the longest job that a worker accepts
	sites   []Supplier
	held    int // cpus held so far
	asks    []Ask
	limits  []string
}

// buy requests workers for the waiting jobs that fit a worker, then for the rest of the minimum. A class of jobs that
// no site can currently serve does not block the classes after it.
func (p *purchase) buy(waiting []matching.Class) {
	p.leaveOut(waiting)
	wait, of := 0, []Supplier{} // number of jobs that no site can serve now, and the sites that could at another time
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

// keepMinimum requests workers, which remain even without work, until the minimum is reached.
func (p *purchase) keepMinimum() {
	for p.held < p.scale.Min && !p.full() {
		s, _ := p.order(Ask{Keep: true}, corral.Resources{})
		if s == nil {
			p.limitSites(p.sites)
			return
		}
		p.take(s)
	}
}

// leaveOut removes the jobs that no worker with these terms at any of the sites could take, and records the reason.
func (p *purchase) leaveOut(waiting []matching.Class) {
	jobs := map[string]int{} // :: why → number of jobs
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

// impossible describes the needs of such jobs that no worker satisfies, or returns "" if some worker may satisfy them.
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

// takers identifies the hosts at which a worker may satisfy a job's needs or, if there are no such hosts, the excessive
// need. Two jobs with the same result fit the same hosts, and so does a job that needs the larger of their amounts of
// each resource.
func (p *purchase) takers(needs matching.Resources) string {
	switch {
	case needs.CPUs > p.scale.CPUs:
		return "cpus"
	case needs.Time > p.longest:
		return "time"
	}
	var fit []byte // for each host, whether the job fits
	for _, s := range p.sites {
		for _, h := range s.Hosts {
			fit = strconv.AppendBool(fit, h.CPUs >= p.scale.CPUs && needs.FitIn(h))
		}
	}
	return string(fit)
}

// fitting returns the sites at which a worker may satisfy a job's needs.
func (p *purchase) fitting(needs corral.Resources) (all []Supplier) {
	for _, s := range p.sites {
		if _, ok := s.room(p.scale.CPUs, needs); ok {
			all = append(all, s)
		}
	}
	return all
}

// serve requests a worker for the first of the waiting classes, and for as many other jobs as it has room for. It
// removes these jobs from waiting. The worker's memory, gpus and disk are the amounts that these jobs need.
func (p *purchase) serve(waiting []matching.Class) bool {
	s, host := p.order(Ask{}, waiting[0].Needs.Resources)
	if s == nil {
		return false
	}
	room := Room{host, p.longest}
	p.asks[len(p.asks)-1].Needs = room.fill(waiting).used
	p.take(s)
	return true
}

// take subtracts the last request from the machine of its site, if the site is one: its memory is at least the share
// that belongs to its cpus, if that much is left.
func (p *purchase) take(s *Supplier) {
	if s.Left == nil {
		return
	}
	ask, host := &p.asks[len(p.asks)-1], s.Hosts[0]
	if share := host.MemoryMiB / max(1, host.CPUs) * p.scale.CPUs; host.MemoryMiB < corral.Unlimited {
		ask.Needs = ask.Needs.Most(corral.Resources{MemoryMiB: min(share, s.Left.MemoryMiB)})
	}
	left := less(*s.Left, corral.Resources{CPUs: p.scale.CPUs, MemoryMiB: ask.Needs.MemoryMiB})
	s.Left = &left
}

// room returns the resources that a worker with this many cpus may have on a host of the site that has room for this
// job; ok is false if no host has room.
func (s Supplier) room(cpus int, job corral.Resources) (host corral.Resources, ok bool) {
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

// full reports whether another worker would exceed the maximum.
func (p *purchase) full() bool {
	if p.held+p.scale.CPUs <= p.scale.Max {
		return false
	}
	p.limit("the maximum of %s is reached: %s held", counted(p.scale.Max, "cpu", "cpus"), counted(p.held, "is", "are"))
	return true
}

// order requests a worker from the first site that accepts another pilot and has a host for such a job. It returns the
// site and the host, or nil.
func (p *purchase) order(a Ask, job corral.Resources) (s *Supplier, host corral.Resources) {
	for i := range p.sites {
		s = &p.sites[i]
		host, ok := s.room(p.scale.CPUs, job)
		if s.Left != nil {
			host = least(host, *s.Left)
			ok = ok && host.CPUs == p.scale.CPUs && job.FitIn(host)
		}
		if ok && s.Closed == "" && s.Pilots > 0 {
			s.Pilots--
			a.Site, p.held = s.Name, p.held+p.scale.CPUs
			p.asks = append(p.asks, a)
			return s, host
		}
	}
	return nil, corral.Resources{}
}

func (p *purchase) limit(format string, args ...any) {
	p.limits = append(p.limits, fmt.Sprintf(format, args...))
}

func (p *purchase) limitJobs(n int) { p.limit("%s on", counted(n, "job waits", "jobs wait")) }

// limitSites records why sites accept no more pilots, each reason once.
func (p *purchase) limitSites(sites []Supplier) {
	for _, s := range sites {
		full := "takes no more pilots by its limits"
		if s.Left != nil && s.Pilots > 0 {
			full = fmt.Sprintf("is a machine of which %s and %d MiB of memory are free of pilots",
				counted(max(0, s.Left.CPUs), "cpu", "cpus"), max(0, s.Left.MemoryMiB))
		}
		why := fmt.Sprintf("site %s %s", s.Name, cmp.Or(s.Closed, full))
		if !slices.Contains(p.limits, why) {
			p.limits = append(p.limits, why)
		}
	}
}

// mostReasons limits the number of reasons in a report, because a queue may contain as many kinds of jobs as jobs.
const mostReasons = 8

// reasons returns the limits that reduced the requests.
func (p *purchase) reasons() []string {
	if more := len(p.limits) - mostReasons; more > 0 {
		last := p.limits[len(p.limits)-1]
		return append(p.limits[:mostReasons-1:mostReasons-1], fmt.Sprintf("and %d reasons more", more), last)
	}
	return p.limits
}

// largest describes, for each resource that a job needs, how much the largest hosts of each site offer.
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

// hasOf describes a host's amount of each needed component, as far as it is known.
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
