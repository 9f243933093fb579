package validator

// The rules for single pilots: their requests, and whether they exist in the planned period. The rules for all pilots
// of a site together are in sites.

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/slot"
)

// pilots checks each pilot against the limits of its site.
func (c *checker) pilots() {
	rooms := map[*plan.Site]*slot.Profile{}
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
		c.breach("site", "pilot %d is for site %s, queue %q, which does not exist", i, q.Site, q.Queue)
	}
}

// shape checks the request of a pilot.
func (c *checker) shape(i int, q plan.Pilot, s *plan.Site) {
	c.unless(q.Hosts >= 1 && q.CPUs >= 1, "shape", "pilot %d has %d hosts of %d cpus", i, q.Hosts, q.CPUs)
	c.unless(q.Hosts <= s.Hosts, "hosts", "pilot %d has %d hosts, but site %s allows %d", i, q.Hosts, q.Site, s.Hosts)
	c.unless(q.Host().FitIn(s.Host), "host", "pilot %d requests hosts of %s, but site %s has %s", i, q.Host(), q.Site,
		s.Host)
	c.unless(time.Duration(q.Walltime) <= s.Walltime, "site walltime", "pilot %d requests %s, but site %s allows %s", i,
		q.Walltime, q.Site, s.Walltime)
}

// life checks the times of a pilot.
func (c *checker) life(i int, q plan.Pilot, s *plan.Site) {
	held := time.Duration(q.End - q.Start)
	c.unless(q.Submit >= 0, "submit", "pilot %d is requested %s before the plan begins", i, -q.Submit)
	c.unless(time.Duration(q.Ready-q.Start) >= s.Overhead, "overhead",
		"pilot %d is ready %s after its start, but the overhead is %s", i, q.Ready-q.Start, s.Overhead)
	c.unless(q.End >= q.Ready, "end", "pilot %d ends before it is ready", i)
	c.unless(held+reserve(q, s) <= time.Duration(q.Walltime)+c.problem.Cluster.Leave, "walltime",
		"pilot %d is held for %s, but its walltime is %s", i, held, q.Walltime)
	for _, closed := range s.Closed {
		c.unless(!closed.Overlaps(plan.Span{From: time.Duration(q.Start), To: time.Duration(q.Start + q.Walltime)}),
			"maintenance", "pilot %d may run while site %s is closed, from %s to %s", i, q.Site, closed.From, closed.To)
	}
}

// reserve returns the end of a pilot's walltime in which no task runs: the site's margin or, if that is less, a
// twentieth of the walltime, between two seconds and a minute, which every pilot needs for an orderly end.
func reserve(q plan.Pilot, s *plan.Site) time.Duration {
	return min(s.Margin, time.Minute, max(2*time.Second, time.Duration(q.Walltime)/20))
}

// wait checks that a pilot waits as long as the site predicts for its shape, unless the queue has room for it for its
// whole walltime, in addition to the plan's other pilots that rely on the room.
func (c *checker) wait(i int, q plan.Pilot, s *plan.Site, room *slot.Profile) {
	from, to := time.Duration(q.Start), time.Duration(q.Start+q.Walltime)
	if room != nil && q.Submit <= q.Start && q.Walltime > 0 && room.Least(from, to) >= q.HeldCPUs() {
		room.Take(from, to, q.HeldCPUs())
		return
	}
	wait, also := s.Wait(s.ShapeOf(q)), ""
	if room != nil {
		also = ", and the queue has no room for it at that time"
	}
	c.unless(time.Duration(q.Start-q.Submit) >= wait, "wait",
		"pilot %d starts %s after its submission, but the wait is %s%s", i, q.Start-q.Submit, wait, also)
}

// noticed is the maximum time from the end of a pilot until its successor starts, where a site has room for only one of
// them: corrald must first see the end.
const noticed = corral.Seconds(2 * time.Second)

// place checks a pilot that replaces another.
func (c *checker) place(i int, q plan.Pilot) {
	if q.Follows == nil {
		return
	}
	k := *q.Follows
	if k < 0 || k >= i {
		c.breach("follows", "pilot %d follows number %d, which is not an earlier pilot", i, k)
		return
	}
	p := c.plan.Pilots[k]
	c.unless(p.Site == q.Site && p.Queue == q.Queue && p.Hosts == q.Hosts && p.Host() == q.Host(), "follows",
		"pilot %d does not fit the place of pilot %d", i, k)
	c.unless(q.Submit >= p.Start && q.Start <= p.End+noticed, "follows",
		"pilot %d, submitted at %s to start at %s, follows pilot %d, which is held from %s to %s", i, q.Submit, q.Start,
		k, p.Start, p.End)
}

// hedge checks a pilot that hedges another: it must be at another site, have the same hosts, be listed after the
// working pilot that it hedges, and be submitted no earlier than that pilot.
func (c *checker) hedge(i int, q plan.Pilot) {
	if q.Hedges == nil {
		return
	}
	k := *q.Hedges
	if k < 0 || k >= i || c.plan.Pilots[k].Hedges != nil {
		c.breach("hedges", "pilot %d hedges number %d, which is not an earlier working pilot", i, k)
		return
	}
	p := c.plan.Pilots[k]
	c.unless(p.Site != q.Site && p.Hosts == q.Hosts && p.Host() == q.Host() && p.Submit <= q.Submit, "hedges",
		"pilot %d must be at another site than pilot %d and have the same hosts", i, k)
}

// bounds checks that the pilots are within the bounds of the goal.
func (c *checker) bounds() {
	pilots, b := c.plan.Pilots, c.plan.Goal.Bounds
	c.unless(b.MaxPilots == 0 || len(pilots) <= b.MaxPilots, "max pilots", "the plan requests %d pilots, but at most "+
		"%d are allowed", len(pilots), b.MaxPilots)
	var changes []change
	for _, q := range c.problem.Present {
		cpus := corral.Resources{CPUs: q.Hosts * q.Host.CPUs}
		changes = append(changes, change{0, cpus, 0}, change{corral.Seconds(q.End), corral.Resources{}.Minus(cpus), 0})
	}
	for i, q := range pilots {
		cpus := corral.Resources{CPUs: q.HeldCPUs()}
		changes = append(changes, change{q.Start, cpus, 1}, change{q.End, corral.Resources{}.Minus(cpus), -1})
		c.unless(q.Submit >= b.NotBefore, "not before", "pilot %d is requested after %s, but none may be before %s", i,
			q.Submit, b.NotBefore)
		c.unless(!b.Static || q.Hedges != nil || q.Submit == b.NotBefore && q.End >= c.plan.Makespan &&
			q.CPUs == pilots[0].CPUs, "static", "pilot %d, of %d cpus per host, is requested after %s and leaves "+
			"after %s", i, q.CPUs, q.Submit, q.End)
	}
	sweep(changes, func(at corral.Seconds, sum corral.Resources, own int) {
		c.unless(b.MaxCPUs == 0 || own == 0 || sum.CPUs <= b.MaxCPUs, "max cpus", "%d cpus are held at %s, those of "+
			"present pilots included, but at most %d are allowed", sum.CPUs, at, b.MaxCPUs)
	})
}
