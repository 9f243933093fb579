package planner

// Special hosts. If every host had room for every task, one task that needs a GPU would keep all others from sites
// without GPUs, and one that needs much memory would give that memory to every host. Therefore the planner also tries
// candidates in which such tasks have hosts of their own, which run nothing else, beside the hosts for all other tasks.
// They are requested like other hosts, when their tasks become ready. During the run, the dispatcher may place other
// tasks on them as well; the execution of the plan shows what that costs.

import (
	"math"
	"slices"
	"sort"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/nodes"
)

// A split divides the needs of a workflow's tasks into ordinary and special ones.
type split struct {
	ordinary []corral.Resources
	special  []special
}

// A special is a part of the tasks that gets hosts of its own: those that need GPUs, or much memory.
type special struct {
	needs []corral.Resources
	least corral.Resources // what all its tasks need, and no ordinary one
	tasks int
}

// muchMemory is the least ratio between the memory of special and of ordinary tasks.
const muchMemory = 2

// split returns a division of the tasks' needs, or false if all are alike.
func (p *planning) split() (s split, ok bool) {
	gpus := func(n corral.Resources) bool { return n.GPUs > 0 }
	rest := p.tasks.needs
	if slices.ContainsFunc(rest, gpus) {
		if rest = slices.DeleteFunc(slices.Clone(rest), gpus); len(rest) == 0 {
			rest = p.tasks.needs // all need some
		} else {
			s.special = append(s.special, p.specials(gpus, corral.Resources{GPUs: 1})...)
		}
	}
	s.ordinary = rest
	if from := p.muchMemory(rest); from > 0 {
		much := func(n corral.Resources) bool { return n.MemoryMiB >= from }
		s.ordinary = slices.DeleteFunc(slices.Clone(rest), much)
		s.special = append(s.special, p.specials(func(n corral.Resources) bool {
			return much(n) && slices.Contains(rest, n)
		}, corral.Resources{MemoryMiB: from})...)
	}
	return s, len(s.special) > 0
}

// specials returns the tasks with certain needs: together, as far as a host of some site has room for each of them.
func (p *planning) specials(of func(corral.Resources) bool, least corral.Resources) (all []special) {
	for _, n := range p.tasks.needs {
		if !of(n) {
			continue
		}
		k := slices.IndexFunc(all, func(s special) bool { return p.hasHost(append(slices.Clone(s.needs), n)) })
		if k < 0 {
			k, all = len(all), append(all, special{least: least})
		}
		all[k].needs = append(all[k].needs, n)
	}
	for k := range all {
		for _, c := range p.tasks.class {
			if slices.Contains(all[k].needs, p.tasks.needs[c]) {
				all[k].tasks++
			}
		}
	}
	return all
}

// hasHost reports whether some site has hosts on which each of the needs fits.
func (p *planning) hasHost(needs []corral.Resources) bool {
	return slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
		_, ok := hostOn(&s, mostCPUs(needs), needs)
		return ok
	})
}

func mostCPUs(needs []corral.Resources) int {
	cpus := 1
	for _, n := range needs {
		cpus = max(cpus, n.CPUs)
	}
	return cpus
}

// muchMemory returns the memory from which needs are special, above the largest gap between two, or 0 if there is no
// such gap, or if every node has as much for each of the cpus anyway.
func (p *planning) muchMemory(needs []corral.Resources) (from int) {
	all := make([]int, 0, len(needs))
	scarce := false
	for _, n := range needs {
		all = append(all, n.MemoryMiB)
		scarce = scarce || slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
			natural, ok := hostOn(&s, n.CPUs, nil)
			return ok && n.MemoryMiB > natural.MemoryMiB
		})
	}
	sort.Ints(all)
	best := float64(muchMemory)
	for i := 1; i < len(all) && scarce; i++ {
		if ratio := float64(all[i]) / float64(max(1, all[i-1])); ratio >= best {
			best, from = ratio, all[i]
		}
	}
	return from
}

// mixed returns the candidates with special hosts.
func (p *planning) mixed() (all []candidate) {
	s, ok := p.split()
	if !ok || p.Goal.Static || p.shapes != nil {
		return nil
	}
	for _, extra := range p.specialHosts(s) {
		for _, cpus := range p.sizes(s.ordinary) {
			for _, order := range p.ordersBeside(cpus, s.ordinary, extra) {
				limit := 0
				for _, o := range order {
					limit += o.count
				}
				for _, n := range counts(min(limit, p.mostHosts(cpus)), max(len(p.Work.Tasks), fewCounts)) {
					all = append(all, p.variants(append(take(order, n), extra...))...)
				}
			}
		}
	}
	return all
}

// fewCounts is the number of tasks for which as few numbers of hosts are tried as for mixed candidates.
const fewCounts = 30_000

// specialHosts returns the choices of special hosts: for the specials in turn at the site that is cheapest, or soonest,
// and one, a few, or as many as may be of use.
func (p *planning) specialHosts(s split) (all []candidate) {
	steps := []float64{0, 0.5, 1}
	if len(p.Work.Tasks) > manySizes { // each candidate takes a second or more
		steps = []float64{1}
	}
	for _, by := range []func(share) float64{price, func(s share) float64 { return wait(s).Seconds() }} {
		for _, step := range steps {
			var c candidate
			for _, sp := range s.special {
				if host, ok := p.specialHost(sp, by); ok {
					host.count = int(math.Round(math.Pow(float64(min(host.count, sp.tasks)), step)))
					c = append(c, host)
				}
			}
			known := slices.ContainsFunc(all, func(o candidate) bool { return slices.Equal(o, c) })
			if len(c) == len(s.special) && !known {
				all = append(all, c)
			}
		}
	}
	return all
}

// specialHost returns the hosts for special tasks at the site that is best by a figure.
func (p *planning) specialHost(sp special, by func(share) float64) (best share, ok bool) {
	for i := range p.Sites {
		s, fits := p.shareOf(&p.Sites[i], mostCPUs(sp.needs), sp.needs)
		if !fits || !p.longEnough(&p.Sites[i], sp) {
			continue
		}
		if s.least = sp.least; sp.least.GPUs == 0 { // no more memory than a task needs: the rest is for others
			s.host.MemoryMiB = 0
			for _, n := range sp.needs {
				s.host.MemoryMiB = max(s.host.MemoryMiB, n.MemoryMiB)
			}
		}
		if !ok || by(s) < by(best) {
			best, ok = s, true
		}
	}
	return best, ok
}

// longEnough reports whether every special task can end within a site's longest walltime.
func (p *planning) longEnough(s *plan.Site, sp special) bool {
	most := longest(s, p.Cluster.Leave)
	for i, c := range p.tasks.class {
		if slices.Contains(sp.needs, p.tasks.needs[c]) && s.Takes(p.Work.Tasks[i])+p.Cluster.Hop > most {
			return false
		}
	}
	return true
}

// ordersBeside returns the orders of ordinary hosts, at most as many at each site as fit on its nodes beside special
// hosts. They have no more memory than their tasks need, so that the rest of a node is left for others.
func (p *planning) ordersBeside(cpus int, needs []corral.Resources, extra candidate) [][]share {
	memory := 0
	for _, n := range needs {
		memory = max(memory, n.MemoryMiB)
	}
	var each []share
	for i := range p.Sites {
		s, ok := p.shareOf(&p.Sites[i], cpus, needs)
		if !ok {
			continue
		}
		s.host.MemoryMiB = min(s.host.MemoryMiB, max(1, memory)*cpus)
		if s.count = beside(s, extra); s.count > 0 {
			each = append(each, s)
		}
	}
	return inOrder(each)
}

// beside returns how many hosts of a share fit on the nodes of its site beside special hosts.
func beside(s share, extra candidate) int {
	held, cpus := nodes.NewTally(s.site.Nodes), s.site.CPUs
	for _, x := range extra {
		if x.site == s.site {
			held.Add(x.count, x.host)
			cpus -= x.count * x.host.CPUs
		}
	}
	most := min(s.count, max(0, cpus)/s.host.CPUs)
	if len(s.site.Nodes) > 0 {
		most = min(most, nodes.Most(s.site.Nodes, s.host))
	}
	return sort.Search(most, func(n int) bool { return !held.Takes(n+1, s.host) })
}
