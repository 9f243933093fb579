package main

import (
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// lucky reports whether a job belongs to a share.
func lucky(seed uint64, job int, share float64) bool {
	return chance.Draw(seed, "reserves", chance.Number(job)) < share
}

// A month is thirty days in which some jobs reserve their time at the quoted price and the others wait.
type month struct {
	machine
	load     float64
	requests string // "exact", or "more" than the run time
	share    float64
	tradeoff func(job int) plan.Share
	name     string // name of the trade-off
}

// A course holds the means of a simulated month: fees in SU, and waits in hours.
type course struct{ fee, wait, jobs float64 }

// play simulates the month several times, each with different jobs that reserve.
func (m month) play(times int) (c course) {
	claimed, waited := 0, 0
	for seed := range times {
		all, waits := claims(m.machine, 30, m.share, uint64(seed), m.tradeoff)
		claimed, waited = claimed+len(all), waited+len(waits)
		for _, one := range all {
			c.fee, c.wait = c.fee+one.fee.Units(), c.wait+one.wait.Hours()
		}
		for _, w := range waits {
			c.jobs += w.Hours()
		}
	}
	n := float64(max(1, claimed))
	return course{c.fee / n, c.wait / n, c.jobs / float64(max(1, waited))}
}

// prices lets a share of the other users' jobs reserve their time at the quoted price, while the others wait, for
// thirty days (figures 23 to 31). It asserts that the mean fee falls to zero as the weight of cost grows; that
// reservations which consider only the start wait at most half as long as jobs; and that fees fall as more jobs
// reserve, rise with the load, and are no lower with EASY. Jobs that request more than their run time start earlier
// than planned, but reservations do not (figures 30 and 31): this is only printed.
func (d *desk) prices() error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	times := d.pick(10, 50)
	d.printf("\nThirty days in which jobs reserve their time at prices, 256 processors, %s; means of %d draws of "+
		"those that do. Waits are in hours, of reservations until their start:\n\n", base.name, times)
	d.printf("| load | policy | requests | share that reserves | α | fee, SU | wait of reservations | of jobs |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	show := func(m month) course {
		c := m.play(times)
		d.printf("| %.2f | %s | %s | %.1f | %s | %.1f | %.2f | %.2f |\n", m.load, m.Policy, m.requests, m.share, m.name,
			c.fee, c.wait, c.jobs)
		return c
	}
	low := month{machine: base.loaded(0.65), load: 0.65, requests: "exact", share: 0.1}
	tenth := (pricing{d}).swept(low, show)
	last := tenth
	for _, share := range []float64{0.5, 0.9} {
		more := low.with(0)
		more.share = share
		c := show(more)
		if c.fee >= last.fee {
			d.breaks("fees do not fall to %.1f SU when %.1f of the jobs reserve", c.fee, share)
		}
		last = c
	}
	high := low.with(0)
	high.machine, high.load = base.loaded(0.78), 0.78
	if c := show(high); c.fee <= tenth.fee {
		d.breaks("fees do not rise with the load: %.1f SU", c.fee)
	}
	high.name, high.tradeoff = "any", func(job int) plan.Share {
		return plan.Share(chance.Draw(3, "alpha", chance.Number(job)) * float64(plan.Whole))
	}
	conservative := show(high)
	high.Policy = queue.EASY
	if c := show(high); c.fee < 0.9*conservative.fee {
		d.breaks("fees are %.1f SU with EASY, and %.1f with conservative backfilling", c.fee, conservative.fee)
	}
	low.jobs, low.requests = inexact(low.jobs), "more"
	for _, a := range sweep {
		show(low.with(a))
	}
	return nil
}

// with returns the month with one trade-off for all jobs.
func (m month) with(a plan.Share) month {
	m.name, m.tradeoff = a.String(), func(int) plan.Share { return a }
	return m
}

// swept prints and checks the effect of the trade-off, and returns the result of the first one, 0.
func (d pricing) swept(m month, show func(month) course) (first course) {
	var last course
	for k, a := range sweep {
		c := show(m.with(a))
		switch {
		case k == 0:
			if first = c; c.wait > c.jobs/2 {
				d.desk.breaks("reservations wait for %.2f h, and jobs for %.2f h", c.wait, c.jobs)
			}
		case c.fee >= last.fee:
			d.desk.breaks("fees do not fall with a trade-off of %s: %.1f SU", a, c.fee)
		}
		last = c
	}
	if last.fee != 0 {
		d.desk.breaks("a job that considers only the cost pays a fee of %.1f SU", last.fee)
	}
	return first
}

// inexact returns jobs that request more than their run time: half of them run for 2 to 20 % of the request, the others
// for 5 % or more (after Singh 2008, section 3.4, where half of the jobs use less than a fifth). No job requests more
// than 36 hours, unless it runs longer.
func inexact(jobs []queue.Job) []queue.Job {
	all := append([]queue.Job(nil), jobs...)
	for i := range all {
		j := &all[i]
		used := 0.05 + 0.95*chance.Draw(4, "used", chance.Number(i))
		if chance.Draw(4, "half", chance.Number(i)) < 0.5 {
			used = 0.02 + 0.18*chance.Draw(4, "used", chance.Number(i))
		}
		asked := time.Duration(float64(j.Runtime) / used).Truncate(time.Second)
		j.Requested = max(j.Runtime, min(asked, 36*time.Hour))
	}
	return all
}
