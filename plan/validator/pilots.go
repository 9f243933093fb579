package validator

// The rules of pilots: what each asks for, and whether it is there from when the plan says until when it says. Rules of
// all pilots of a site together are those of sites.

import (
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/availability"
)

// pilots checks each pilot against what its site gives.
func (c *checker) pilots() {
	rooms := map[*plan.Site]*availability.Profile{}
	for i, q := range c.plan.Pilots {
		if s := c.problem.Site(q.Site, q.Queue); s != nil {
			if s.Room != nil && rooms[s] == nil {
				rooms[s] = s.Room.Clone()
			}
			c.shape(i, q, s)
			c.life(i, q, s)
			c.wait(i, q, s, rooms[s])
			c.place(i, q)
			c.hedge(i, q)
			continue
		}
		c.breach("site", "pilot %d is for site %s, queue %q, which is not there", i, q.Site, q.Queue)
	}
}

// shape checks what a pilot asks for.
func (c *checker) shape(i int, q plan.Pilot, s *plan.Site) {
	c.unless(q.Hosts >= 1 && q.CPUs >= 1, "shape", "pilot %d has %d hosts of %d cpus", i, q.Hosts, q.CPUs)
	c.unless(q.Hosts <= s.Hosts, "hosts", "pilot %d has %d hosts, site %s gives %d", i, q.Hosts, q.Site, s.Hosts)
	c.unless(q.Host().FitIn(s.Host), "host", "pilot %d asks for hosts of %s, site %s has %s", i, q.Host(), q.Site,
		s.Host)
	c.unless(time.Duration(q.Walltime) <= s.Walltime, "site walltime", "pilot %d asks for %s, site %s gives %s", i,
		q.Walltime, q.Site, s.Walltime)
}

// life checks when a pilot is what.
func (c *checker) life(i int, q plan.Pilot, s *plan.Site) {
	held := time.Duration(q.End - q.Start)
	c.unless(q.Submit >= 0, "submit", "pilot %d is asked for %s before the plan begins", i, -q.Submit)
	c.unless(time.Duration(q.Ready-q.Start) >= s.Overhead, "overhead",
		"pilot %d is ready %s after its start; it takes %s", i, q.Ready-q.Start, s.Overhead)
	c.unless(q.End >= q.Ready, "end", "pilot %d ends before it is ready", i)
	c.unless(held+s.Margin <= time.Duration(q.Walltime), "walltime", "pilot %d is held for %s of a walltime of %s", i,
		held, q.Walltime)
	for _, closed := range s.Closed {
		c.unless(!closed.Overlaps(plan.Span{From: time.Duration(q.Start), To: time.Duration(q.End)}), "maintenance",
			"pilot %d is held while site %s is closed, from %s to %s", i, q.Site, closed.From, closed.To)
	}
}

// wait checks that a pilot waits for as long as those of its shape do, unless the queue has room for it, beside the
// plan's others that rely on that, for its whole walltime.
func (c *checker) wait(i int, q plan.Pilot, s *plan.Site, room *availability.Profile) {
	from, to := time.Duration(q.Start), time.Duration(q.Start+q.Walltime)
	if room != nil && q.Submit <= q.Start && q.Walltime > 0 && room.Least(from, to) >= q.HeldCPUs() {
		room.Take(from, to, q.HeldCPUs())
		return
	}
	wait, also := s.Wait(shapeOf(q, s)), ""
	if room != nil {
		also = ", and the queue has no room for it then"
	}
	c.unless(time.Duration(q.Start-q.Submit) >= wait, "wait",
		"pilot %d starts %s after it is asked for; the wait is %s%s", i, q.Start-q.Submit, wait, also)
}

// place checks a pilot that takes the place of another.
func (c *checker) place(i int, q plan.Pilot) {
	if q.Follows == nil {
		return
	}
	k := *q.Follows
	if k < 0 || k >= i {
		c.breach("follows", "pilot %d follows number %d, which is not one before it", i, k)
		return
	}
	p := c.plan.Pilots[k]
	c.unless(p.Site == q.Site && p.Queue == q.Queue && p.Hosts == q.Hosts && p.Host() == q.Host(), "follows",
		"pilot %d does not fit the place of pilot %d", i, k)
	c.unless(q.Submit >= p.Start && q.Start <= p.End, "follows", "pilot %d, asked for at %s, to start at %s, follows "+
		"pilot %d, which is held from %s to %s", i, q.Submit, q.Start, k, p.Start, p.End)
}

// hedge checks a pilot that hedges another: at another site, with the same hosts, behind all that work.
func (c *checker) hedge(i int, q plan.Pilot) {
	if q.Hedges == nil {
		return
	}
	k := *q.Hedges
	if k < 0 || k >= i || c.plan.Pilots[k].Hedges != nil {
		c.breach("hedges", "pilot %d hedges number %d, which is none before it that works", i, k)
		return
	}
	p := c.plan.Pilots[k]
	c.unless(p.Site != q.Site && p.Hosts == q.Hosts && p.Host() == q.Host() && p.Submit <= q.Submit, "hedges",
		"pilot %d is at the same site as pilot %d, or is not like it", i, k)
}

func shapeOf(q plan.Pilot, s *plan.Site) plan.Shape {
	host := q.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	return plan.Shape{Hosts: q.Hosts, Host: host, Walltime: time.Duration(q.Walltime)}
}
