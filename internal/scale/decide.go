package scale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/matching"
)

// A View is what a decision depends on.
type View struct {
	Waiting []matching.Class // jobs in the queue that no worker has
	Room    []Room           // workers that are there
	Coming  []Coming         // workers that were asked for
	Held    int              // cpus that the cluster's glideins hold or ask for, those that drain included
	Longest time.Duration    // the longest job that a new worker takes
	Sites   []Site
}

// A Room is what is free of a worker.
type Room struct {
	Free corral.Resources
	Left time.Duration // the longest job that it takes
}

// A Coming is a worker that was asked for and is not there.
type Coming struct {
	Room
	Own     corral.GlideinID // the scale's glidein that consists of it, if that waits at its site and may be withdrawn
	SpareAt time.Time        // since when no job has needed it; zero: it was needed at the last look
}

// A Site is where workers may be asked for.
type Site struct {
	Name   string
	Pilots int    // that it takes beside those that are there
	Closed string // why it takes none now; empty: it takes some
}

// A Decision says what to do. Spare are the pilots that no job needs now; they are withdrawn when that has lasted.
type Decision struct {
	Asks     []Ask
	Withdraw []corral.GlideinID
	Spare    []corral.GlideinID
	Report   string // what was found, what follows, and the limit that cut it
}

// An Ask is a worker to ask for.
type Ask struct {
	Site  string
	Needs corral.Resources // of the jobs that it is for; memory and gpus are at least that
	Keep  bool             // it stays without work: it is of the minimum
}

// Decide compares what waits with what is there and to come.
func Decide(now time.Time, s corral.Scale, v View) Decision {
	waiting := slices.Clone(v.Waiting)
	jobs := count(waiting)
	for i := range v.Room {
		v.Room[i].fill(waiting)
	}
	there := jobs - count(waiting)
	var d Decision
	spareCPUs := v.Held - s.Min
	for _, c := range slices.Backward(v.coming(waiting)) { // the newest go first
		d.Spare = append(d.Spare, c.Own)
		cpus := c.Free.CPUs
		if !c.SpareAt.IsZero() && now.Sub(c.SpareAt) >= time.Duration(s.Idle) && spareCPUs >= cpus {
			d.Withdraw = append(d.Withdraw, c.Own)
			spareCPUs -= cpus
		}
	}
	coming := jobs - there - count(waiting)
	p := &purchase{scale: s, view: v, held: v.Held, left: slices.Clone(v.Sites)}
	p.buy(waiting)
	d.Asks = p.asks
	said := []string{fmt.Sprintf("%d jobs wait: %d fit workers that are there, %d workers that are to come", jobs,
		there, coming)}
	if len(d.Asks) > 0 {
		said = append(said, fmt.Sprintf("%d workers are asked for", len(d.Asks)))
	}
	if len(d.Withdraw) > 0 {
		said = append(said, fmt.Sprintf("%d pilots that nothing needs are withdrawn", len(d.Withdraw)))
	}
	d.Report = strings.Join(append(said, p.limits...), "; ")
	return d
}

// coming gives what waits to the workers that are to come, and returns those of the scale's own that get nothing and
// may be withdrawn, oldest first.
func (v *View) coming(waiting []matching.Class) (spare []Coming) {
	for i := range v.Coming {
		c := v.Coming[i]
		if got := c.fill(waiting); got == 0 && c.Own != 0 {
			spare = append(spare, c)
		}
	}
	slices.SortFunc(spare, func(a, b Coming) int { return cmp.Compare(a.Own, b.Own) })
	return spare
}

// fill takes as many jobs as the room has place for, in their order, out of waiting; it returns how many.
func (r *Room) fill(waiting []matching.Class) (got int) {
	for i := range waiting {
		w := &waiting[i]
		if w.Jobs == 0 || w.Needs.Time > r.Left {
			continue
		}
		n := min(w.Jobs, times(w.Needs.Resources, r.Free))
		w.Jobs -= n
		r.Free = r.Free.Minus(multiple(w.Needs.Resources, n))
		got += n
	}
	return got
}

// times is how often needs fit into room.
func times(needs, room corral.Resources) int {
	n := corral.Unlimited
	for _, c := range [][2]int{
		{needs.CPUs, room.CPUs}, {needs.MemoryMiB, room.MemoryMiB},
		{needs.GPUs, room.GPUs}, {needs.DiskMiB, room.DiskMiB},
	} {
		if c[0] > 0 {
			n = min(n, max(0, c[1])/c[0])
		}
	}
	return n
}

func multiple(r corral.Resources, n int) corral.Resources {
	return corral.Resources{CPUs: n * r.CPUs, MemoryMiB: n * r.MemoryMiB, GPUs: n * r.GPUs, DiskMiB: n * r.DiskMiB}
}

func count(all []matching.Class) (jobs int) {
	for _, c := range all {
		jobs += c.Jobs
	}
	return jobs
}

// A purchase is the workers that are asked for at one look.
type purchase struct {
	scale  corral.Scale
	view   View
	held   int
	left   []Site
	asks   []Ask
	limits []string
}

// buy asks for workers for what waits and fits one, then for what the minimum lacks.
func (p *purchase) buy(waiting []matching.Class) {
	for i := range waiting {
		w := &waiting[i]
		switch {
		case w.Jobs == 0:
			continue
		case w.Needs.CPUs > p.scale.CPUs:
			p.limit("%d jobs need %d cpus: workers have %d (--cpus)", w.Jobs, w.Needs.CPUs, p.scale.CPUs)
			w.Jobs = 0
		case w.Needs.Time > p.view.Longest:
			p.limit("%d jobs take %s: workers of %s take none above %s (--walltime)", w.Jobs, w.Needs.Time,
				p.scale.Walltime, p.view.Longest)
			w.Jobs = 0
		}
	}
	for count(waiting) > 0 {
		needs, jobs := p.worker(waiting)
		if !p.ask(Ask{Needs: needs}) {
			p.limit("%d jobs wait on", jobs+count(waiting))
			return
		}
	}
	for p.held < p.scale.Min && p.ask(Ask{Keep: true}) {
	}
}

// worker takes the jobs of one new worker out of what waits. Its memory, gpus and disk are what they need.
func (p *purchase) worker(waiting []matching.Class) (needs corral.Resources, jobs int) {
	room := Room{corral.Resources{CPUs: p.scale.CPUs, MemoryMiB: corral.Unlimited, GPUs: corral.Unlimited,
		DiskMiB: corral.Unlimited}, p.view.Longest}
	before := room.Free
	jobs = room.fill(waiting)
	return before.Minus(room.Free), jobs
}

// ask asks the first site that takes another pilot for a worker, unless that would pass the maximum.
func (p *purchase) ask(a Ask) bool {
	if p.held+p.scale.CPUs > p.scale.Max {
		p.limit("the maximum of %d cpus is reached: %d are held", p.scale.Max, p.held)
		return false
	}
	for i := range p.left {
		if s := &p.left[i]; s.Closed == "" && s.Pilots > 0 {
			s.Pilots--
			a.Site, p.held = s.Name, p.held+p.scale.CPUs
			p.asks = append(p.asks, a)
			return true
		}
	}
	for _, s := range p.left {
		p.limit("site %s %s", s.Name, cmp.Or(s.Closed, "takes no more pilots by its limits"))
	}
	return false
}

func (p *purchase) limit(format string, args ...any) {
	p.limits = append(p.limits, fmt.Sprintf(format, args...))
}

const (
	retryMin = 10 * time.Second
	retryMax = 30 * time.Minute
)

// RetryAt is when a site is asked again after so many pilots in a row have failed there, the last of them then.
func RetryAt(failures int, last time.Time) time.Time {
	if failures == 0 {
		return time.Time{}
	}
	return last.Add(min(retryMin<<min(failures-1, 16), retryMax))
}
