package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A View holds all data on which a decision depends.
type View struct {
	Waiting []matching.Class // queued jobs that are on no worker
	Room    []Room           // present workers
	Coming  []Coming         // requested workers
	Held    int              // cpus that the cluster's glideins hold or request, including draining glideins
	Longest time.Duration    // the longest job that a new worker accepts
	Sites   []Supplier
	Whole   []Room        // present workers, with what they have when they are free
	Waited  time.Duration // for how long some job has been waiting
}

// A Coming is a requested worker that is not present yet.
type Coming struct {
	Room
	Own     corral.GlideinID // the scale's glidein for the worker, if it waits at its site and may be withdrawn
	SpareAt time.Time        // since when no job has needed the worker; zero: needed at the last check
}

// A Supplier is a site at which workers may be requested.
type Supplier struct {
	Name    string
	Pilots  int                // number of additional pilots that the site accepts
	Closed  string             // why the site currently accepts no pilots; empty: it accepts them
	Hosts   []corral.Resources // the largest host of each queue that accepts such workers; empty: hosts are unknown
	StartUp time.Duration      // from a request until the worker is there
	Left    *corral.Resources  // what is left of the one machine that all its hosts are; nil: they are nodes
}

// A Decision contains the actions to take. Spare lists the pilots that no job needs now; they are withdrawn if no job
// needs them for long enough.
type Decision struct {
	Asks     []Ask
	Withdraw []corral.GlideinID
	Spare    []corral.GlideinID
	Report   string // findings, consequences, and the limits that applied
}

// An Ask is a request for a worker.
type Ask struct {
	Site  string
	Needs corral.Resources // needs of the jobs for which it is requested; its memory and gpus are at least as large
	Keep  bool             // the worker remains even without work, as part of the minimum
}

// Decide compares the waiting jobs with the present and future workers.
func Decide(now time.Time, s corral.Scale, v View) Decision {
	p := &purchase{scale: s, longest: v.Longest, held: v.Held, sites: slices.Clone(v.Sites)}
	waiting := matching.Merge(v.Waiting, p.takers)
	f := found{jobs: count(waiting)}
	for _, r := range v.Room {
		f.there.add(r.fill(waiting))
	}
	var d Decision
	spare := v.fillComing(waiting, &f.coming)
	spareCPUs := v.Held - s.Min
	for _, c := range slices.Backward(spare) { // the newest are withdrawn first
		d.Spare = append(d.Spare, c.Own)
		cpus := c.Free.CPUs
		if !c.SpareAt.IsZero() && now.Sub(c.SpareAt) >= time.Duration(s.Idle) && spareCPUs >= cpus {
			d.Withdraw = append(d.Withdraw, c.Own)
			spareCPUs -= cpus
		}
	}
	f.soon = v.soon(waiting)
	p.buy(waiting)
	d.Asks = p.asks
	d.Report = strings.Join(append(f.report(d), p.reasons()...), "; ")
	return d
}

// found holds the number of waiting jobs, and the numbers of waiting jobs that fit present and future workers.
type found struct {
	jobs          int
	there, coming filled
	soon          int // jobs that present workers can run before another worker would be there
}

// report describes the findings and their consequences.
func (f found) report(d Decision) []string {
	said := []string{"no job waits"}
	if f.jobs > 0 {
		said[0] = fmt.Sprintf("%s: %d fit workers that are there, %d workers that are to come",
			counted(f.jobs, "job waits", "jobs wait"), f.there.jobs, f.coming.jobs)
	}
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{f.there.guessed + f.coming.guessed, "of these is taken to fit though not all is known of the workers",
			"of these are taken to fit though not all is known of the workers"},
		{f.soon, "of these is left to the workers that are there: another would come later",
			"of these are left to the workers that are there: another would come later"},
		{len(d.Asks), "worker is asked for", "workers are asked for"},
		{len(d.Withdraw), "pilot that nothing needs is withdrawn", "pilots that nothing needs are withdrawn"},
	} {
		if c.n > 0 {
			said = append(said, counted(c.n, c.one, c.many))
		}
	}
	return said
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (f *filled) add(g filled) { f.jobs, f.guessed = f.jobs+g.jobs, f.guessed+g.guessed }

// soon removes the waiting jobs if the present workers need less time for all of them than another worker would take to
// come, and returns their number. It does so only for that long, because the present workers may be busy for longer,
// and only if all jobs have an estimate and fit a worker.
func (v *View) soon(waiting []matching.Class) (jobs int) {
	var work float64 // in cpu-seconds, which may exceed a Duration
	cpus := 0
	for _, w := range v.Whole {
		cpus += w.Free.CPUs
	}
	first := time.Duration(math.MaxInt64)
	for _, s := range v.Sites {
		if s.Closed == "" {
			first = min(first, s.StartUp)
		}
	}
	if first == math.MaxInt64 { // no site is open, which is the reason to report
		return 0
	}
	for _, w := range waiting {
		fits := func(r Room) bool { return w.Needs.Time <= r.Left && w.Needs.FitIn(r.Free) }
		if w.Jobs > 0 && (w.Needs.Time <= 0 || !slices.ContainsFunc(v.Whole, fits)) {
			return 0
		}
		work += float64(w.Jobs) * float64(w.Needs.CPUs) * w.Needs.Time.Seconds()
		jobs += w.Jobs
	}
	if cpus == 0 || v.Waited >= first || work/float64(cpus) >= first.Seconds() {
		return 0
	}
	for i := range waiting {
		waiting[i].Jobs = 0
	}
	return jobs
}

// fillComing assigns waiting jobs to the future workers, and returns the scale's own workers that receive no job and
// may be withdrawn, oldest first.
func (v *View) fillComing(waiting []matching.Class, all *filled) (spare []Coming) {
	for i := range v.Coming {
		c := v.Coming[i]
		f := c.fill(waiting)
		if all.add(f); f.jobs == 0 && c.Own != 0 {
			spare = append(spare, c)
		}
	}
	slices.SortFunc(spare, func(a, b Coming) int { return cmp.Compare(a.Own, b.Own) })
	return spare
}

func count(all []matching.Class) (jobs int) {
	for _, c := range all {
		jobs += c.Jobs
	}
	return jobs
}

const (
	retryMin = 10 * time.Second
	retryMax = 30 * time.Minute
)

// RetryAt returns when a site may be used again after the given number of consecutive failures of its pilots, the last
// of which happened at the given time.
func RetryAt(failures int, last time.Time) time.Time {
	if failures == 0 {
		return time.Time{}
	}
	return last.Add(min(retryMin<<min(failures-1, 16), retryMax))
}
