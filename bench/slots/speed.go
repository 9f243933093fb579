package main

import (
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/plantest"
)

// speed measures searches of the thesis's size, 100 members and 10 generations. With a workflow of 100 tasks and about
// 30 offered slots a search must take less than a second. With the seismic hazard workflow the limit is 30 seconds,
// even at the instant with the most slots.
func (d *desk) speed() error {
	d.printf("\nSearches of 100 members and 10 generations:\n\n")
	d.printf("| workflow | slots | time | at most |\n|---|---|---|---|\n")
	small, err := d.lublin(256)
	if err != nil {
		return err
	}
	large, err := d.lublin(430)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		work  plan.Work
		m     machine
		slots int // approximate number of offered slots
		most  time.Duration
	}{
		{"100 tasks", plantest.Levels(typical, 1), small.loaded(0.85), 30, time.Second},
		{"100 tasks", plantest.Levels(typical, 1), small.loaded(0.85), 1000, 0},
		{"seismic hazard", plantest.SeismicHazard(288), large.loaded(0.88), 30, 30 * time.Second},
		{"seismic hazard", plantest.SeismicHazard(288), large.loaded(0.88), 1000, 30 * time.Second},
	} {
		c, err := nearest(s.work, s.m, s.slots)
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := c.search(moga.Options{Seed: 1}); err != nil {
			return err
		}
		took := time.Since(began)
		most := "–"
		if s.most > 0 {
			most = s.most.String()
		}
		d.printf("| %s | %d | %.2f s | %s |\n", s.name, len(c.Sites[0].Slots), took.Seconds(), most)
		if s.most > 0 && took > s.most {
			d.breaks("a search for %s on %d slots takes %s; the limit is %s", s.name, len(c.Sites[0].Slots),
				took, s.most)
		}
	}
	return nil
}

// nearest returns the instance, among a hundred instants, whose number of offered slots is closest to slots.
func nearest(w plan.Work, m machine, slots int) (best instance, err error) {
	off := -1
	for _, q := range m.states(100) {
		c, err := at(w, q)
		if err != nil {
			return c, err
		}
		n := len(c.Sites[0].Slots) - slots
		if n = max(n, -n); off < 0 || n < off {
			best, off = c, n
		}
	}
	return best, nil
}
