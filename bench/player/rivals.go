package main

import (
	"encoding/json"
	"io"
	"slices"
)

// A rival is the simplest schedule that may do what a plan does: a list schedule (HEFT without insertion: Topcuoglu,
// Hariri, Wu 2002) on equal pilots of one site, which are there from the beginning. It is played like a plan, so that
// its makespan and its cost are comparable.
type rival struct {
	Site     string  `json:"site"`
	Queue    string  `json:"queue,omitempty"`
	Pilots   int     `json:"pilots"`
	Hosts    int     `json:"hosts"`
	CPUs     int     `json:"cpus"` // per host
	Walltime seconds `json:"walltime_s"`
	Rounds   int     `json:"rounds"` // the pilots are requested again at the end of their walltime
	Held     bool    `json:"held"`   // they stay until the last task has ended; else they leave when they are idle
	Makespan seconds `json:"makespan_s"`
	Cost     money   `json:"cost"`
}

// mostRounds limits how often the pilots of a rival are requested.
const mostRounds = 8

// rivals plays list schedules on all numbers of pilots, in several shapes and walltimes, and returns those that no
// other one excels in both makespan and cost, the fastest first. The game has no pilots but the present ones.
func (g *game) rivals(sites map[place]*site) (front []rival) {
	var all []rival
	for at, s := range sites {
		for _, cpus := range g.shapes(s) {
			for n := 1; n <= g.widest(s, cpus); n = max(n+1, n*5/4) {
				all = append(all, g.against(at, s, cpus, n)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b rival) int {
		if a.Makespan != b.Makespan {
			return int(a.Makespan - b.Makespan)
		}
		return int(a.Cost - b.Cost)
	})
	for _, r := range all {
		if n := len(front); n == 0 || r.Cost < front[n-1].Cost {
			front = append(front, r)
		}
	}
	return front
}

// shapes returns the numbers of cpus of a host: powers of two, the most that a task needs, and the site's host.
func (g *game) shapes(s *site) (all []int) {
	least := 1
	for _, t := range g.tasks {
		least = max(least, t.needs.CPUs)
	}
	most := s.HostCPUs
	if most == 0 {
		most = 64
	}
	for c := least; c < most; c *= 2 {
		all = append(all, c)
	}
	if least <= most {
		all = append(all, most)
	}
	return all
}

// widest returns the largest number of hosts that is of use and that the site allows.
func (g *game) widest(s *site, cpus int) int {
	n := g.width()/cpus + 1
	if s.CPUs > 0 {
		n = min(n, s.CPUs/cpus)
	}
	if s.Pilots > 0 {
		n = min(n, s.Pilots*max(1, s.Hosts))
	}
	return n
}

// width returns the cpus of all tasks that are ready at once if each starts as soon as its parents are done.
func (g *game) width() (most int) {
	type change struct {
		at   seconds
		cpus int
	}
	var changes []change
	begin := make([]seconds, len(g.tasks))
	order := make([]int, len(g.tasks))
	for i, t := range g.tasks {
		order[t.position] = i
	}
	for _, i := range order {
		t := &g.tasks[i]
		end := begin[i] + max(1, t.estimate)
		changes = append(changes, change{begin[i], t.needs.CPUs}, change{end, -t.needs.CPUs})
		for _, c := range t.children {
			begin[c] = max(begin[c], end)
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(max(-1, min(1, a.at-b.at)))
		}
		return a.cpus - b.cpus
	})
	now := 0
	for _, c := range changes {
		now += c.cpus
		most = max(most, now)
	}
	return most
}

// against plays n hosts of a shape: for the longest walltime, then for the one that this took, both as pilots that stay
// and as pilots that leave when they are idle.
func (g *game) against(at place, s *site, cpus, n int) (all []rival) {
	r := rival{Site: at.site, Queue: at.queue, Pilots: n, Hosts: 1, CPUs: cpus, Walltime: s.Walltime, Rounds: 1}
	if s.Pilots > 0 && n > s.Pilots {
		r.Hosts = (n + s.Pilots - 1) / s.Pilots
		r.Pilots = (n + r.Hosts - 1) / r.Hosts
		if s.Hosts > 0 && r.Hosts > s.Hosts || s.CPUs > 0 && r.Pilots*r.Hosts*cpus > s.CPUs {
			return nil
		}
	}
	if r.Walltime == 0 {
		r.Walltime = 30 * 24 * 3600 * second
	}
	for _, r.Held = range []bool{true, false} {
		long := r
		for long.Rounds = 1; !g.pit(s, &long) && long.Rounds < mostRounds; {
			long.Rounds *= 2
		}
		if long.Makespan == 0 {
			continue
		}
		all = append(all, long)
		if short := long; long.Rounds == 1 {
			const least, minute = 600 * second, 60 * second
			short.Walltime = min(s.walltime(), max(least, (long.Makespan+s.Overhead+s.Margin)/minute*minute+minute))
			if g.pit(s, &short) {
				all = append(all, short)
			}
		}
	}
	return all
}

func (s *site) walltime() seconds {
	if s.Walltime == 0 {
		return never
	}
	return s.Walltime
}

// pit plays a rival and sets its makespan and its cost. ok is false if it leaves a task undone.
func (g *game) pit(s *site, r *rival) (ok bool) {
	with := *g
	with.pilots, with.at, with.first, with.lead, with.unit = nil, nil, nil, nil, s.Unit
	wait := s.planned(r.Hosts * r.CPUs)
	if s.Wait != nil {
		wait = *s.Wait
	}
	for round := range r.Rounds {
		for range r.Pilots {
			q := request{Site: r.Site, Queue: r.Queue, Hosts: r.Hosts, Walltime: r.Walltime,
				Submit: seconds(round) * (r.Walltime + wait)}
			q.resources = resources{CPUs: r.CPUs, MemoryMiB: s.MemoryMiB, GPUs: s.GPUs}
			q.Start = q.Submit + wait
			if r.Held {
				q.MinStay = r.Walltime
			}
			with.pilots, with.at = append(with.pilots, q), append(with.at, s)
			with.first, with.lead = append(with.first, nil), append(with.lead, 0)
		}
	}
	for i := range with.begun { // the present pilots are numbered after the plan's
		with.begun = slices.Clone(with.begun)
		with.begun[i].pilot += len(with.pilots) - len(g.pilots)
	}
	x := with.play(luck{}).result()
	if x.Makespan == nil {
		return false
	}
	r.Makespan, r.Cost = max(1, *x.Makespan), x.Cost.Money
	return true
}

// planned returns the wait that the plan assumes for pilots of this size.
func (s *site) planned(cpus int) seconds {
	for _, w := range s.Waits {
		if w.CPUs >= cpus {
			return w.Planned
		}
	}
	if n := len(s.Waits); n > 0 {
		return s.Waits[n-1].Planned
	}
	return 0
}

// printRivals writes the best list schedules for the plan's sites as JSON.
func (set *settings) printRivals(planFile, workflowFile string, out io.Writer) error {
	g, _, err := set.game(planFile, workflowFile)
	if err != nil {
		return err
	}
	front := g.rivals(g.sites)
	if front == nil {
		front = []rival{}
	}
	return json.NewEncoder(out).Encode(map[string]any{"rivals": front})
}
