package bound

import (
	"cmp"
	"slices"
)

// An interval is a window of time.
type interval struct{ from, to int64 }

func (w interval) length() int64 { return w.to - w.from }

// A load is a window with the minimum energy that jobs use in it, wherever they are placed.
type load struct {
	interval
	energy int64 // cpus × time
}

// roundUp returns the load's average number of cpus, rounded up.
func (l load) roundUp() int64 { return (l.energy + l.length() - 1) / l.length() }

func (l load) cpus() float64 { return float64(l.energy) / float64(l.length()) }

// An energy finds the windows with the highest energy per length. This is the energetic reasoning of Baptiste, Le Pape
// and Nuijten (Satisfiability tests and time-bound adjustments for cumulative scheduling problems, Annals of Operations
// Research 92, 1999; "left-shift/right-shift"): energy ÷ length is a lower bound on the cpus of any schedule.
//
// The relevant windows: with a fixed beginning, energy is piecewise linear in the end, and the quotient can be maximal
// only where a job ceases to contribute. This is the job's deadline if its head is in the window; head + deadline −
// beginning if it may run at the beginning, but need not; head + length if it must. Time can be mirrored, so the same
// holds for the beginning with a fixed end. If both are of the second kind, the window can be widened or narrowed at
// both ends by the same time, without loss, until one of them is not. So every head and every latest start is tried as
// a beginning, with all ends, and then the same in mirrored time: 4n sweeps over n jobs.
type energy struct {
	byLatest, byEnd, bySum, byDeadline []mark
	beginnings                         []int64 // the distinct heads and latest starts, ascending
}

// A mark is an instant of a job, with the job's values that a sweep needs.
type mark struct {
	at, head, latest, end, need int64
}

func newEnergy(jobs []job) *energy {
	sorted := func(at func(job) int64) []mark {
		marks := make([]mark, len(jobs))
		for i, j := range jobs {
			marks[i] = mark{at(j), j.head, j.latest, j.head + j.length, j.need}
		}
		slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
		return marks
	}
	e := &energy{
		byLatest:   sorted(func(j job) int64 { return j.latest }),
		byEnd:      sorted(func(j job) int64 { return j.head + j.length }),
		bySum:      sorted(func(j job) int64 { return j.head + j.latest + j.length }),
		byDeadline: sorted(func(j job) int64 { return j.latest + j.length }),
	}
	for _, j := range jobs {
		e.beginnings = append(e.beginnings, j.head, j.latest)
	}
	slices.Sort(e.beginnings)
	e.beginnings = slices.Compact(e.beginnings)
	return e
}

// after returns the marks later than an instant.
func after(marks []mark, at int64) []mark {
	i, _ := slices.BinarySearchFunc(marks, at+1, func(m mark, at int64) int { return cmp.Compare(m.at, at) })
	return marks[i:]
}

// A cursor iterates over marks in order and skips those that do not count.
type cursor struct {
	marks  []mark
	counts func(mark) bool
}

// next returns the next mark that counts; ok is false at the end.
func (c *cursor) next() (m mark, ok bool) {
	for ; len(c.marks) > 0; c.marks = c.marks[1:] {
		if c.counts(c.marks[0]) {
			return c.marks[0], true
		}
	}
	return mark{}, false
}

// A sweep moves the end of a window with a fixed beginning.
type sweep struct {
	load
	slope int64 // growth of energy per unit of time
}

// reach moves the end; the slope changes there.
func (s *sweep) reach(at, change int64) {
	s.energy += s.slope * (at - s.to)
	s.to = at
	s.slope += change
}

// most returns the window with the given beginning that has the highest energy per length; its length is 0 if no job
// can run after the beginning. A job contributes from its latest start, or from the beginning if that is later, until
// it ceases to contribute.
func (e *energy) most(from int64) (best load) {
	s := sweep{load: load{interval{from, from}, 0}}
	running, begins := after(e.byEnd, from), after(e.byLatest, from)
	for _, m := range running {
		if m.latest <= from {
			s.slope += m.need
		}
	}
	ceases := [3]cursor{
		{running, func(m mark) bool { return m.head < from && m.latest <= from }},
		{after(e.bySum, 2*from), func(m mark) bool { return m.head < from && m.latest > from && m.end > from }},
		{after(e.byDeadline, from), func(m mark) bool { return m.head >= from }},
	}
	for {
		first, at := -1, int64(0)
		for k := range ceases {
			m, ok := ceases[k].next()
			if k == 1 {
				m.at -= from
			}
			if ok && (first < 0 || m.at < at) {
				first, at = k, m.at
			}
		}
		if first < 0 {
			return best
		}
		for ; len(begins) > 0 && begins[0].at <= at; begins = begins[1:] {
			if begins[0].end > from {
				s.reach(begins[0].at, begins[0].need)
			}
		}
		s.reach(at, -ceases[first].marks[0].need)
		ceases[first].marks = ceases[first].marks[1:]
		if best.length() == 0 || s.cpus() > best.cpus() {
			best = s.load
		}
	}
}

// loads returns for each beginning the window with the highest energy per length. If all beginnings would take more
// than the given number of steps, it samples them evenly, and then tries the beginnings next to the best one.
func (e *energy) loads(steps int) (all []load) {
	look := func(beginnings []int64) {
		for _, at := range beginnings {
			if l := e.most(at); l.length() > 0 {
				all = append(all, l)
			}
		}
	}
	sweeps := max(8, steps/(8*len(e.byEnd)))
	if len(e.beginnings) <= sweeps {
		look(e.beginnings)
		return all
	}
	var some []int64
	for k := range sweeps / 2 {
		some = append(some, e.beginnings[k*len(e.beginnings)/(sweeps/2)])
	}
	look(some)
	best, _ := slices.BinarySearch(e.beginnings, slices.MaxFunc(all, byCPUs).from)
	look(e.beginnings[max(0, best-sweeps/4):min(len(e.beginnings), best+sweeps/4)])
	return all
}

func byCPUs(a, b load) int { return cmp.Compare(a.cpus(), b.cpus()) }

// mirrored returns the jobs in reversed time.
func mirrored(jobs []job) []job {
	all := make([]job, len(jobs))
	for i, j := range jobs {
		all[i] = job{j.need, j.length, -(j.latest + j.length), -(j.head + j.length)}
	}
	return all
}

// energetic returns windows in which jobs need many cpus, in descending order. The first is the maximum over all
// windows, unless finding it would take more than the given number of steps.
func energetic(jobs []job, steps int) []load {
	if len(jobs) == 0 {
		return nil
	}
	all := newEnergy(jobs).loads(steps / 2)
	for _, l := range newEnergy(mirrored(jobs)).loads(steps / 2) {
		all = append(all, load{interval{-l.to, -l.from}, l.energy})
	}
	slices.SortFunc(all, func(a, b load) int {
		return cmp.Or(byCPUs(b, a), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return slices.Compact(all)
}
