package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// sites and systems are varied: it is not published which were used in the experiments, nor how their batch systems
// started jobs.
var (
	sites   = []thesisSite{abe, mercury, ia64}
	systems = []batchSystem{atOnce, pbs, periodic}
)

// broadband simulates E2.3: 768 tasks on the 16 cores of WIND, whose batch system was Condor.
func (s *study) broadband() error {
	wf, err := broadband(6, 8)
	if err != nil {
		return err
	}
	a := asItIs(wf, measured2012)
	worst := 100.0
	for _, site := range sites {
		for _, b := range systems {
			name := "Broadband of 768, 16 cpus, " + site.name + ", " + b.name
			c := comparison{experiment: "E2.3", name: name, published: "40 %"}
			if c, err = s.compare(c, a, 0, setting{16, site, b}); err != nil {
				return err
			}
			worst = min(worst, less(c.pilots, c.direct))
			if site == abe && b == pbs {
				s.claim(claim{row: "E2.3", what: "pilots take longer than the list schedule by",
					got: over(c.pilots, c.schedule), low: -1, high: 10, unit: "%"})
			}
		}
	}
	s.claim(claim{row: "E2.3", what: "pilots are faster, whatever the site and its batch system, by at least",
		got: worst, high: 100, unit: "%"})
	return nil
}

// A series is E2.4 in one setting, with 1 to 16 processors and in both sizes.
type series struct {
	setting
	plain, clustered []float64 // by how many percent pilots are faster
	below            float64   // how far below a list schedule, at most, in percent
}

// montage simulates E2.4: 206 and 6,062 tasks on 1 to 16 processors, task by task and in as many groups for each level.
func (s *study) montage() error {
	one, err := montage(40, 120, 1)
	if err != nil {
		return err
	}
	six, err := sixDegrees()
	if err != nil {
		return err
	}
	both := []*workflow.Workflow{one, six}
	for _, site := range sites {
		for _, b := range systems {
			var of study
			g, err := of.montages(both, 1, setting{site: site, system: b})
			if err != nil {
				return err
			}
			s.series = append(s.series, g)
			if site == abe && b == pbs {
				s.comparisons = append(s.comparisons, of.comparisons...)
				err = s.claimGains(both, g)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// claimGains adds the claims of F52 for a setting.
func (s *study) claimGains(both []*workflow.Workflow, g series) error {
	s.claim(claim{row: "F52", what: "task by task pilots are faster, mean, by", got: mean(g.plain), low: 30, high: 60,
		unit: "%"})
	s.claim(claim{row: "F52", what: "in groups of a level, mean, by", got: mean(g.clustered), low: 5, high: 25,
		unit: "%"})
	s.claim(claim{row: "F52", what: "a makespan is below its list schedule by at most", got: g.below, low: -100,
		high: 1, unit: "%"})
	before := mean(g.plain)
	for _, times := range []int{4, 16} {
		var of study
		longer, err := of.montages(both, times, g.setting)
		if err != nil {
			return err
		}
		now := mean(longer.plain)
		what := fmt.Sprintf("with tasks %d times as long pilots gain less than before by", times)
		s.claim(claim{row: "F52", what: what, got: before - now, high: 100, unit: "points"})
		before = now
	}
	return nil
}

// montages compares both sizes with runtimes multiplied by times.
func (s *study) montages(both []*workflow.Workflow, times int, in setting) (g series, err error) {
	g.setting = in
	for _, wf := range both {
		a := asItIs(wf, func(t *workflow.Task) time.Duration { return time.Duration(times) * t.Runtime })
		for _, cpus := range []int{1, 2, 4, 8, 16} {
			in.cpus = cpus
			for _, groups := range []int{0, cpus} {
				c := comparison{experiment: "E2.4", name: fmt.Sprintf("Montage of %d, %d cpus", len(wf.Tasks), cpus)}
				if c.published = "45 % in the mean, up to 78 %"; groups > 0 {
					c.name, c.published = c.name+", by level", "11 % in the mean, up to 23 %"
				}
				if c, err = s.compare(c, a, groups, in); err != nil {
					return g, err
				}
				gain := less(c.pilots, c.direct)
				if groups > 0 {
					g.clustered = append(g.clustered, gain)
				} else {
					g.plain = append(g.plain, gain)
				}
				g.below = max(g.below, less(c.pilots, c.schedule), less(c.direct, c.schedule))
			}
		}
	}
	return g, nil
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
