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
	Capacities []Capacity // of the workers present or requested
}

// A Capacity lists the resources that one worker offers to one task.
type Capacity struct {
	Worker    string        // the id of the worker, if it is present
	CPUs      int           // all cpus of the worker, not only the free ones
	MemoryMiB int           // likewise
	GPUs      int           // likewise
	DiskMiB   int           // likewise; corral.Unlimited if it is requested
	Left      time.Duration // present: time until it leaves; requested: walltime without the reserve
	Speed     corral.Speed  // of its host
}

// CapacityOf returns the capacity of a worker that has registered. A draining or disconnected worker offers nothing,
// but it belongs in the offer because its tasks continue.
func CapacityOf(w corral.Worker, now time.Time) Capacity {
	c := Capacity{Worker: w.ID}
	if w.Connected && !w.Draining {
		c = Offering(w.Resources(), w.EndsAt.Sub(now)-StartMargin, w.Speed)
		c.Worker = w.ID
	}
	return c
}

// Offering returns the capacity of a worker on a host with these resources and this speed, with the given time left.
func Offering(host corral.Resources, left time.Duration, speed corral.Speed) Capacity {
	return Capacity{CPUs: host.CPUs, MemoryMiB: host.MemoryMiB, GPUs: host.GPUs, DiskMiB: host.DiskMiB, Left: left,
		Speed: speed}
}

// fits reports whether a worker of this capacity could take a job that needs n.
func (c Capacity) fits(n need) bool {
	can := c.need()
	return n.of.FitIn(can.of) && n.time <= can.time
}

// need returns the largest need that a worker of this capacity can meet.
func (c Capacity) need() need {
	return need{corral.Resources{CPUs: c.CPUs, MemoryMiB: c.MemoryMiB, GPUs: c.GPUs, DiskMiB: c.DiskMiB},
		c.Speed.Within(c.Left)}
}

// takes reports whether some worker, present or requested, could take a job that needs n.
func (o Offer) takes(n need) bool {
	return slices.ContainsFunc(o.Capacities, func(c Capacity) bool { return c.fits(n) })
}

// slack returns the minimum time for which some worker could still take a job that needs n: the time of a requested
// worker starts to pass only when its pilot begins.
func (o Offer) slack(n need) (longest time.Duration) {
	for _, c := range o.Capacities {
		if c.fits(n) {
			longest = max(longest, c.Left-c.Speed.Takes(n.time))
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

// distinct returns the offer without capacities that others cover, so that comparing it with 100,000 jobs remains cheap
// with hundreds of workers.
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

// lack explains in half a sentence why no worker could take a job that needs n: "needs 65536 MiB; the largest worker
// here has 2048 MiB". takes(n) must be false.
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
		unit, again string // the unit in its first and second use
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
		return fmt.Sprintf("needs %s; the worker %s that stays longest has %s left%s",
			round(n.time), here, round(most.time), o.pace())
	}
	return fmt.Sprintf("needs %s and %s; no worker %s has all of that together", n.of, round(n.time), here)
}

// most returns the maximum of each quantity over all workers, and their status: "here", or "requested" if none is
// present.
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

// pace returns a remark if the worker that accepts the longest task is slow: its time left in a sentence is then for
// fast hosts, as are the needs. There must be a worker.
func (o Offer) pace() string {
	longest := slices.MaxFunc(o.Capacities, func(c, d Capacity) int {
		return cmp.Compare(c.need().time, d.need().time)
	})
	if longest.Speed.Factor() < 1 {
		return " at its speed"
	}
	return ""
}

// round removes insignificant digits, such as the milliseconds of minutes.
func round(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// A Shortage describes why released jobs do not run.
type Shortage struct {
	Able bool   // some job runs, or could run on a present or requested worker
	What string // the lack of one task, in a sentence; empty: no task lacks anything
}

// Shortage compares the released jobs with a cluster's offer. An assigned job whose worker has left counts as waiting,
// because the cluster may have requeued it without a record; an awaited job is returned if its worker does not come
// back. Shortage examines every job, so do not call it for every event.
func (x *Execution) Shortage(offer Offer) Shortage {
	present, few := offer.present(), offer.distinct()
	_, loose := x.Next()
	short := Shortage{Able: loose || x.scripts.busy()} // a back-off or a script will end
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
		if x.units.raised(tasks[0]) { // the user has not requested this much memory
			lack += " (the last: " + x.units.extra(tasks[0]).why + ")"
		} else if len(tasks) == 1 && x.plan.Tasks[tasks[0]].Usual && few.takes(need{of: first.need.of}) {
			lack += usualTime
		}
		short.What = x.plan.sentence(tasks, lack, int(lacking-first.left))
	}
	return short
}

// usualTime is the hint for a task that uses the default runtime.
const usualTime = ": the task gives no time, so the default of --default-runtime holds; shorten it, " +
	"give the task's own (`corral submit --time`), or ask for longer pilots"

// before reports whether job a comes before job b: by priority, then by rank, then by release.
func (p *plan) before(a, b *job) bool {
	x, y := p.scope.rules(a.tasks[0]).Priority, p.scope.rules(b.tasks[0]).Priority
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(p.rank[b.tasks[0]], p.rank[a.tasks[0]]), cmp.Compare(a.seq, b.seq)) < 0
}

// sentence returns a sentence about the lack of a job of these tasks, and the number of other tasks that cannot run.
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

// News returns records of the new facts in an offer: the cpus of workers for which they were unknown, and the number of
// cpus registered at once if it is the maximum so far.
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
