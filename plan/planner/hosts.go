package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/nodes"
)

// candidates returns the numbers of hosts to try, by site and shape.
func (p *planning) candidates() []candidate {
	var all []candidate
	if len(p.Present) > 0 {
		all = append(all, candidate{}) // the present pilots may suffice
	}
	for _, cpus := range p.hostSizes() {
		for _, order := range p.orders(cpus) {
			limit := 0
			for _, s := range order {
				limit += s.count
			}
			for _, n := range counts(min(limit, p.mostHosts(cpus)), len(p.Work.Tasks)) {
				all = append(all, p.variants(take(order, n))...)
			}
		}
	}
	return append(all, p.mixed()...)
}

// variants returns a candidate, and the same hosts with other rules for how long they stay and which are filled first.
func (p *planning) variants(c candidate) []candidate {
	all := []candidate{c}
	if p.Goal.Static {
		return all
	}
	if c.hosts() > 1 && len(p.Work.Tasks) <= manyStays {
		all = append(all, c.staying(overPauses))
	}
	if len(p.Work.Tasks) <= manySizes && p.faster(c) {
		all = append(all, c.goingAhead())
	}
	if unsure(p) {
		all = append(all, c.staying(throughout))
	}
	return all
}

// For a workflow with more than manySizes tasks, each candidate takes a second or more. The cost varies little for
// small numbers of hosts, and rises close to the maximum useful number. Therefore the lower half is sampled coarsely
// and the upper half, which forms the front, finely.
const (
	coarseTries = 4
	fineTries   = 7
)

// counts returns the numbers of hosts to try, up to most: the more tasks, the fewer numbers.
func counts(most, tasks int) []int {
	if tasks <= manySizes {
		return steps(1, most, min(40, max(16, 400_000/max(tasks, 1))))
	}
	half := max(1, most/2)
	return slices.Compact(append(steps(1, half, coarseTries), steps(half, most, fineTries)...))
}

// steps returns about tries integers from least to most, evenly spaced on a logarithmic scale.
func steps(least, most, tries int) []int {
	var all []int
	for k := range tries {
		part := float64(k) / float64(max(1, tries-1))
		n := int(math.Round(float64(least) * math.Pow(float64(most)/float64(least), part)))
		if len(all) == 0 || n > all[len(all)-1] {
			all = append(all, n)
		}
	}
	return all
}

// manyStays is the maximum number of tasks of a workflow for which hosts that stay through pauses are tried, too. They
// cost more than hosts that are released and requested again, unless start-ups cost more than the pauses.
const manyStays = 5000

// A stay is the time for which hosts stay when they are idle.
type stay uint8

const (
	whileBusy  stay = iota // briefly; they are requested again when there is work for them
	overPauses             // through pauses, but not after their last tasks
	throughout             // to the end of the run, whenever that is
)

// staying returns the candidate with hosts that stay.
func (c candidate) staying(s stay) candidate {
	c = slices.Clone(c)
	for i := range c {
		c[i].stay = s
	}
	return c
}

// muchFaster is the least ratio of two speeds for which the faster hosts may be worth their price.
const muchFaster = 1.02

// faster reports whether a candidate has hosts that are noticeably faster than those of a present pilot. Present pilots
// cost nothing more, and are used first; but tasks on the critical path may be worth a faster host.
func (p *planning) faster(c candidate) bool {
	return slices.ContainsFunc(c, func(s share) bool {
		return slices.ContainsFunc(p.Present, func(q plan.Present) bool {
			return muchFaster*q.Speed.Factor() < s.site.Speed.Factor()
		})
	})
}

// goingAhead returns the candidate with all hosts filled by speed, the fastest first, also before present pilots.
func (c candidate) goingAhead() candidate {
	c = slices.Clone(c)
	for i := range c {
		c[i].ahead = true
	}
	return c
}

// stays returns how long the hosts of a candidate stay; it is the same for all of them.
func (c candidate) stays() stay {
	if len(c) == 0 {
		return whileBusy
	}
	return c[0].stay
}

// take returns the first n hosts of the shares.
func take(order []share, n int) candidate {
	var some candidate
	for _, s := range order {
		if s.count = min(s.count, n); s.count > 0 {
			some = append(some, s)
			n -= s.count
		}
	}
	return some
}

// manySizes is the maximum number of tasks of a workflow for which more than two host sizes are tried.
const manySizes = 50_000

// hostSizes returns the numbers of cpus per host to try: powers of two, the maximum that a task needs, and the whole
// hosts of each site.
func (p *planning) hostSizes() []int {
	if p.shapes != nil {
		return p.shapes
	}
	return p.sizes(p.tasks.needs)
}

// sizes returns the numbers of cpus per host to try for tasks with the given needs.
func (p *planning) sizes(needs []corral.Resources) []int {
	need := mostCPUs(needs)
	sizes := []int{need}
	for _, s := range p.Sites {
		sizes = append(sizes, max(need, min(s.Host.CPUs, p.most)))
	}
	for c := 1; c < slices.Max(sizes); c *= 2 {
		if c > need {
			sizes = append(sizes, c)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if len(p.Work.Tasks) > manySizes && len(sizes) > 2 {
		return []int{sizes[0], sizes[len(sizes)-1]} // each size takes seconds
	}
	return sizes
}

// orders returns the sites' hosts of a given size in each order in which they may be filled: each site alone, and all
// sites by price and by wait.
func (p *planning) orders(cpus int) [][]share {
	var each []share
	for i := range p.Sites {
		if s, ok := p.share(&p.Sites[i], cpus); ok {
			each = append(each, s)
		}
	}
	return inOrder(each)
}

// inOrder returns the orders in which the hosts of several sites may be filled: each site alone, and all sites by price
// and by wait.
func inOrder(each []share) (all [][]share) {
	for _, s := range each {
		all = append(all, []share{s})
	}
	if len(each) < 2 {
		return all
	}
	byPrice, byWait := slices.Clone(each), slices.Clone(each)
	slices.SortStableFunc(byPrice, func(a, b share) int { return cmp.Compare(price(a), price(b)) })
	slices.SortStableFunc(byWait, func(a, b share) int { return cmp.Compare(wait(a), wait(b)) })
	return append(all, byPrice, byWait)
}

func wait(s share) time.Duration {
	return s.site.Wait(plan.Shape{Hosts: 1, Host: s.host, Walltime: s.site.Walltime}) + s.site.Overhead
}

// price returns the price of a cpu-hour on a host.
func price(s share) float64 {
	_, money := s.site.Tariff.Bill(plan.Pilot{
		Shape: corral.Shape{Hosts: 1, CPUs: s.host.CPUs, MemoryMiB: known(s.host.MemoryMiB), GPUs: known(s.host.GPUs)},
		End:   corral.Seconds(time.Hour)})
	return money.Units() / float64(s.host.CPUs)
}

// share returns the hosts of a given size that a site may provide; ok is false if there are none, or if a task does not
// fit on them.
func (p *planning) share(s *plan.Site, cpus int) (share, bool) {
	return p.shareOf(s, cpus, p.tasks.needs)
}

// shareOf returns the hosts of a given size that a site may provide for tasks with the given needs.
func (p *planning) shareOf(s *plan.Site, cpus int, needs []corral.Resources) (share, bool) {
	if cpus > s.Host.CPUs {
		return share{}, false
	}
	host, ok := hostOn(s, cpus, needs)
	if !ok {
		return share{}, false
	}
	count := s.CPUs / cpus
	if s.Pilots < plan.Unlimited {
		count = min(count, s.Pilots*s.Hosts)
	}
	if count = min(count, withGPUs(s, host)); len(s.Nodes) > 0 {
		count = min(count, nodes.Most(s.Nodes, host))
	}
	return share{site: s, host: host, count: count}, count > 0
}

// hostOn returns a host of a given number of cpus on which each of the needs fits, with its share of a node's memory
// and, if a task needs one, of its GPUs; ok is false if no node has room for it.
func hostOn(s *plan.Site, cpus int, needs []corral.Resources) (host corral.Resources, ok bool) {
	var most corral.Resources
	for _, n := range needs {
		most = most.Most(n)
	}
	switch {
	case most.CPUs > cpus:
		return host, false
	case len(s.Nodes) > 0:
		if host, ok = nodes.Room(s.Nodes, cpus, most); most.GPUs == 0 {
			host.GPUs = 0
		}
		return host, ok
	}
	host = s.Host
	host.CPUs = cpus
	if host.MemoryMiB < plan.Unlimited {
		host.MemoryMiB = max(s.Host.MemoryMiB*cpus/s.Host.CPUs, most.MemoryMiB)
	}
	host.GPUs = gpusFor(needs, s.Host, cpus)
	return host, most.FitIn(host)
}
