package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
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

// A Coming is a worker that was asked for and is not there.
type Coming struct {
	Room
	Own     corral.GlideinID // the scale's glidein that consists of it, if that waits at its site and may be withdrawn
	SpareAt time.Time        // since when no job has needed it; zero: it was needed at the last look
}

// A Site is where workers may be asked for.
type Site struct {
	Name   string
	Pilots int                // that it takes beside those that are there
	Closed string             // why it takes none now; empty: it takes some
	Hosts  []corral.Resources // the largest host of each queue that takes such workers; none: nothing is known of them
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
	p := &purchase{scale: s, longest: v.Longest, held: v.Held, sites: slices.Clone(v.Sites)}
	waiting := matching.Merge(v.Waiting, p.takers)
	f := found{jobs: count(waiting)}
	for _, r := range v.Room {
		f.there.add(r.fill(waiting))
	}
	var d Decision
	spare := v.fillComing(waiting, &f.coming)
	spareCPUs := v.Held - s.Min
	for _, c := range slices.Backward(spare) { // the newest go first
		d.Spare = append(d.Spare, c.Own)
		cpus := c.Free.CPUs
		if !c.SpareAt.IsZero() && now.Sub(c.SpareAt) >= time.Duration(s.Idle) && spareCPUs >= cpus {
			d.Withdraw = append(d.Withdraw, c.Own)
			spareCPUs -= cpus
		}
	}
	p.buy(waiting)
	d.Asks = p.asks
	d.Report = strings.Join(append(f.report(d), p.reasons()...), "; ")
	return d
}

// found is how many jobs wait, and what they fit.
type found struct {
	jobs          int
	there, coming filled
}

// report says what was found, and what follows.
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

// fillComing gives what waits to the workers that are to come, and returns those of the scale's own that get nothing
// and may be withdrawn, oldest first.
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

// RetryAt is when a site is asked again after so many pilots in a row have failed there, the last of them then.
func RetryAt(failures int, last time.Time) time.Time {
	if failures == 0 {
		return time.Time{}
	}
	return last.Add(min(retryMin<<min(failures-1, 16), retryMax))
}
