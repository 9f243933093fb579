package execution

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// An Offer lists the resources that a cluster has for the tasks of runs now, and those requested for it.
type Offer struct {
	CPUs       int        // of the workers registered now
	Capacities []Capacity // of the workers present, and of those requested
}

// A Capacity lists the resources that one worker offers to one task.
type Capacity struct {
	Worker    string        // the id of the worker, if it is present
	CPUs      int           // all of the worker's, not only those free now
	MemoryMiB int           // likewise
	GPUs      int           // likewise
	DiskMiB   int           // likewise; corral.Unlimited of one that is requested
	Left      time.Duration // present: until it leaves; requested: its walltime without the reserve
}

// CapacityOf returns the capacity of a worker that has registered. One that is draining or out of touch offers
// nothing, but it belongs into the offer, because its tasks go on.
func CapacityOf(w corral.Worker, now time.Time) Capacity {
	c := Capacity{Worker: w.ID}
	if w.Connected && !w.Draining {
		c = Offering(w.Resources(), w.EndsAt.Sub(now)-StartMargin)
		c.Worker = w.ID
	}
	return c
}

// Offering returns the capacity of a worker on such a host with the given time left.
func Offering(host corral.Resources, left time.Duration) Capacity {
	return Capacity{CPUs: host.CPUs, MemoryMiB: host.MemoryMiB, GPUs: host.GPUs, DiskMiB: host.DiskMiB, Left: left}
}

// fits reports whether a worker of this capacity could take a job that needs n.
func (c Capacity) fits(n need) bool {
	can := c.need()
	return n.of.FitIn(can.of) && n.time <= can.time
}

// need is the largest need that a worker of this capacity can meet.
func (c Capacity) need() need {
	return need{corral.Resources{CPUs: c.CPUs, MemoryMiB: c.MemoryMiB, GPUs: c.GPUs, DiskMiB: c.DiskMiB}, c.Left}
}

// takes reports whether some worker, present or requested, could take a job that needs n.
func (o Offer) takes(n need) bool {
	return slices.ContainsFunc(o.Capacities, func(c Capacity) bool { return c.fits(n) })
}

// slack is for how long some worker could still take a job that needs n, at least: the time of one that is requested
// passes from when its pilot has begun.
func (o Offer) slack(n need) (longest time.Duration) {
	for _, c := range o.Capacities {
		if c.fits(n) {
			longest = max(longest, c.Left-n.time)
		}
	}
	return longest
}

// present returns the ids of the workers that are present.
func (o Offer) present() map[string]bool {
	ids := make(map[string]bool)
	for _, c := range o.Capacities {
		if c.Worker != "" {
			ids[c.Worker] = true
		}
	}
	return ids
}

// distinct returns the offer without capacities that another one covers, so that asking it about each of
// 100,000 jobs stays cheap with hundreds of workers.
func (o Offer) distinct() Offer {
	few := Offer{CPUs: o.CPUs}
	for _, c := range o.Capacities {
		if !few.takes(c.need()) {
			kept := slices.DeleteFunc(few.Capacities, func(k Capacity) bool { return c.fits(k.need()) })
			few.Capacities = append(kept, c)
		}
	}
	return few
}

// lack explains in half a sentence why no worker could take a job that needs n: "needs 65536 MiB; the largest
// worker here has 2048 MiB". It is for offers of which takes(n) is false.
func (o Offer) lack(n need) string {
	if len(o.Capacities) == 0 {
		return "needs a worker; the cluster has none and none is requested"
	}
	most, here := o.most()
	if most.of.CPUs == 0 {
		return "needs a worker; those here take nothing any more and none is requested"
	}
	for _, r := range []struct {
		need, most  int
		unit, again string // the unit where it is named first, and after that
	}{
		{n.of.CPUs, most.of.CPUs, " cpus", ""},
		{n.of.MemoryMiB, most.of.MemoryMiB, " MiB", " MiB"},
		{n.of.GPUs, most.of.GPUs, " gpus", ""},
		{n.of.DiskMiB, most.of.DiskMiB, " MiB of disk", " MiB"},
	} {
		if r.need > r.most {
			return fmt.Sprintf("needs %d%s; the largest worker %s has %d%s", r.need, r.unit, here, r.most, r.again)
		}
	}
	if n.time > most.time {
		return fmt.Sprintf("needs %s; the worker %s that stays longest has %s left",
			round(n.time), here, round(most.time))
	}
	return fmt.Sprintf("needs %s and %s; no worker %s has all of that together", n.of, round(n.time), here)
}

// most returns the greatest of each quantity that any worker has, and where the workers are: "here", or
// "requested" if none is present.
func (o Offer) most() (n need, where string) {
	where = "requested"
	for _, c := range o.Capacities {
		can := c.need()
		n.of, n.time = n.of.Most(can.of), max(n.time, can.time)
		if c.Worker != "" {
			where = "here"
		}
	}
	return n, where
}

// round drops digits that are of no use to a reader: milliseconds of minutes.
func round(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// A Shortage describes why released jobs do not run.
type Shortage struct {
	Able bool   // some job runs, or could run on a worker that is present or requested
	What string // the lack of one task, in a sentence; empty: no task lacks anything
}

// Shortage compares the jobs released with the offer of a cluster. An assigned job whose worker has left counts
// as one that waits, because the cluster may have queued it again without a record; one that is awaited is
// returned if its worker does not come back. It looks at every job, so do not call it for every event.
func (x *Execution) Shortage(offer Offer) Shortage {
	present, few := offer.present(), offer.distinct()
	_, loose := x.Next()
	short := Shortage{Able: loose || x.scripts.busy()} // a back-off will end, or a script
	var first *job
	lacking := int32(0)
	for _, e := range x.jobs.bySeq {
		held := e.worker != 0 && present[x.roster.workers[e.worker].name]
		e.awaited = e.awaited && !held
		if held || e.awaited || few.takes(e.need) {
			short.Able = true
			continue
		}
		lacking += e.left
		if first == nil || x.plan.before(e, first) {
			first = e
		}
	}
	if first != nil {
		tasks, lack := x.jobs.remaining(first), few.lack(first.need)
		if x.units.raised(tasks[0]) { // the user has not requested that much memory
			lack += " (the last: " + x.units.extra(tasks[0]).why + ")"
		} else if len(tasks) == 1 && x.plan.Tasks[tasks[0]].Usual && few.takes(need{of: first.need.of}) {
			lack += usualTime
		}
		short.What = x.plan.sentence(tasks, lack, int(lacking-first.left))
	}
	return short
}

// usualTime is the hint for a task that has no time of its own and gets the default.
const usualTime = ": the task gives no time, so the default of --default-runtime holds; shorten it, " +
	"give the task's own (`corral submit --time`), or ask for longer pilots"

// before reports whether job a comes before job b: by priority, by rank, then by the order of their release.
func (p *plan) before(a, b *job) bool {
	x, y := p.scope.rules(a.tasks[0]).Priority, p.scope.rules(b.tasks[0]).Priority
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(p.rank[b.tasks[0]], p.rank[a.tasks[0]]), cmp.Compare(a.seq, b.seq)) < 0
}

// sentence returns the sentence that a job of these tasks lacks something, and how many others do.
func (p *plan) sentence(tasks []int32, lack string, others int) string {
	what := "task " + p.Tasks[tasks[0]].ID
	if len(tasks) > 1 {
		what = fmt.Sprintf("the clustered job of task %s and %d more", p.Tasks[tasks[0]].ID, len(tasks)-1)
	}
	switch others {
	case 0:
		return fmt.Sprintf("%s %s", what, lack)
	case 1:
		return fmt.Sprintf("%s %s; one more task cannot run either", what, lack)
	}
	return fmt.Sprintf("%s %s; %d more tasks cannot run either", what, lack, others)
}

// News returns the records that an offer is worth: the cpus of workers of which they were not known, and how many were
// registered at once, if that is the maximum so far.
func (x *Execution) News(now time.Time, offer Offer) (news []Record) {
	for _, c := range offer.Capacities {
		if c.Worker != "" && c.CPUs > 0 && x.roster.workers[x.roster.index[c.Worker]].cpus == 0 {
			news = append(news, Record{At: ToMsec(now), Met: &Meeting{c.Worker, c.CPUs}})
		}
	}
	if offer.CPUs > x.roster.cpus {
		news = append(news, Record{At: ToMsec(now), CPUs: offer.CPUs})
	}
	return news
}
