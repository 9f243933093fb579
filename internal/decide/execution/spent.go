package execution

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// What tasks took of workers is kept by worker and hour, for those who account for it. It is a function of the records
// that were applied, like all of an Execution: so the total of a run is the same after any crash, and whoever keeps it
// replaces what was kept.
//
// The last attempt at a task counts as used when it ends. When the task gets another attempt, for whatever reason, that
// time moves to what is lost. Of attempts that vanish with their worker it is not known when they began, and the time
// is estimated as the report's lost work is: rather too little than too much.

// Spent is what tasks took of a worker's cpus in an hour.
type Spent struct {
	Worker string
	Hour   int64 // since 1970, UTC
	Used   Msec  // of a cpu
	Lost   Msec  // of a cpu, in what had to run again
}

// spent is kept of all tasks.
type spent struct {
	hours   map[spentIn]Spent // without the worker's name
	counted []bool            // :: task → its last attempt is in what is used; may be shorter than there are tasks
}

// spentIn is an hour of a worker.
type spentIn struct {
	worker int32
	hour   int64
}

func (s spentIn) compare(o spentIn) int {
	return cmp.Or(cmp.Compare(s.worker, o.worker), cmp.Compare(s.hour, o.hour))
}

// A stretch is a time in which an attempt had some cpus of a worker.
type stretch struct {
	worker   int32
	cpus     int
	from, to Msec
}

const msecPerHour = Msec(time.Hour / time.Millisecond)

// lastMsec is thousands of years from now, and far from overflowing.
const lastMsec = Msec(1) << 50

// each calls do for each hour of the stretch with the time of cpus in it. What a worker reports is not believed beyond
// a year.
func (s stretch) each(do func(in spentIn, took Msec)) {
	s.to = min(max(0, s.to), lastMsec)
	s.from = max(0, s.from, s.to-Msec(mostTime.Milliseconds()))
	for s.from < s.to {
		end := min(s.to, (s.from/msecPerHour+1)*msecPerHour)
		do(spentIn{s.worker, int64(s.from / msecPerHour)}, (end-s.from)*Msec(max(1, s.cpus)))
		s.from = end
	}
}

// use counts an attempt that has ended as used.
func (s *spent) use(task int32, of stretch) {
	s.counted = append(s.counted, make([]bool, max(0, int(task)+1-len(s.counted)))...)
	s.counted[task] = true
	of.each(func(in spentIn, took Msec) {
		v := s.hours[in]
		v.Used += took
		s.hours[in] = v
	})
}

// again counts the last attempt at a task, which was used, as lost: there will be another.
func (s *spent) again(task int32, of stretch) {
	if int(task) >= len(s.counted) || !s.counted[task] {
		return
	}
	s.counted[task] = false
	of.each(func(in spentIn, took Msec) {
		v := s.hours[in]
		v.Used -= took
		v.Lost += took
		s.hours[in] = v
	})
}

// lose counts what vanished with its worker.
func (s *spent) lose(of stretch) {
	of.each(func(in spentIn, took Msec) {
		v := s.hours[in]
		v.Lost += took
		s.hours[in] = v
	})
}

// stretch is the time of the last attempt at a task that ended.
func (a *attempts) stretch(i int32) stretch {
	from, to := a.span(int(i))
	return stretch{a.tasks[i].worker, a.plan.Tasks[i].CPUs, from, to}
}

// since is the time that a job has had its worker, as far as that is known.
func (r *roster) since(e *entry, until Msec) stretch {
	from := min(max(e.busyFrom, r.workers[e.worker].ended), until)
	return stretch{e.worker, e.need.of.CPUs, from, until}
}

// Heard returns the time of the last record that was applied, zero if there is none.
func Heard(x *Execution) time.Time { return x.control.grown.at.Time() }

// SpentOf returns what the tasks took up to now, those that are running included, by worker in the order in which they
// were met, and by hour.
func SpentOf(x *Execution, now time.Time) []Spent {
	hours := maps.Clone(x.attempts.spent.hours)
	var there []*entry
	for _, e := range x.book.entries {
		if e.worker != 0 {
			there = append(there, e)
		}
	}
	at := ToMsec(now)
	_, began := x.roster.lostWork(there, at)
	for _, e := range began {
		x.roster.since(e, at).each(func(in spentIn, took Msec) {
			v := hours[in]
			v.Used += took
			hours[in] = v
		})
	}
	all := make([]Spent, 0, len(hours))
	for _, in := range slices.SortedFunc(maps.Keys(hours), spentIn.compare) {
		v := hours[in]
		v.Worker, v.Hour = x.roster.workers[in.worker].name, in.hour
		if v.Used != 0 || v.Lost != 0 {
			all = append(all, v)
		}
	}
	return all
}
