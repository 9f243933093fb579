package execution

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The cpu time that tasks used is recorded by worker and hour, for accounting. Like the rest of an Execution, it is a
// function of the records applied: the total of a run is the same after any crash, and replaces the stored total.
//
// The last attempt at a task counts as used time when it ends. When the task gets another attempt, for any reason, that
// time becomes lost time. The start times of attempts that vanished with their workers are unknown: their time is
// estimated like the lost work in the report, and is more likely too low than too high.

// A WorkerHour is the time for which tasks occupied a worker's cpus within an hour.
type WorkerHour struct {
	Worker string
	Hour   int64 // since 1970, UTC
	Used   Msec  // cpu time
	Lost   Msec  // cpu time of attempts that were repeated
}

// hours keeps worker hours, without the workers' names.
type hours map[hourKey]WorkerHour

// An hourKey is an hour of a worker.
type hourKey struct {
	worker int32
	hour   int64
}

func (k hourKey) compare(o hourKey) int {
	return cmp.Or(cmp.Compare(k.worker, o.worker), cmp.Compare(k.hour, o.hour))
}

// A stretch is a period in which an attempt occupied some cpus of a worker.
type stretch struct {
	worker   int32
	cpus     int
	from, to Msec
}

const msecPerHour = Msec(time.Hour / time.Millisecond)

// lastMsec is thousands of years from now, but far from an overflow.
const lastMsec = Msec(1) << 50

// add adds the time of a stretch to the used time and to the lost time, each 1, 0 or -1 times. A reported stretch is
// limited to the last year before its end.
func (h hours) add(s stretch, used, lost Msec) {
	s.to = min(max(0, s.to), lastMsec)
	s.from = max(0, s.from, s.to-Msec(mostTime.Milliseconds()))
	for s.from < s.to {
		end := min(s.to, (s.from/msecPerHour+1)*msecPerHour)
		took := (end - s.from) * Msec(max(1, s.cpus))
		key := hourKey{s.worker, int64(s.from / msecPerHour)}
		v := h[key]
		v.Used += used * took
		v.Lost += lost * took
		h[key] = v
		s.from = end
	}
}

func (h hours) use(s stretch)   { h.add(s, 1, 0) }
func (h hours) lose(s stretch)  { h.add(s, 0, 1) }
func (h hours) waste(s stretch) { h.add(s, -1, 1) } // previously counted as used

// stretch returns the period of a task's last attempt that ended.
func (x *Execution) stretch(i int32) stretch {
	from, to := x.span(i)
	return stretch{x.units.at(i).worker, x.plan.Tasks[i].CPUs, from, to}
}

// stretch returns the period in which a job has occupied its worker, as far as it is known.
func (r *roster) stretch(j *job, until Msec) stretch {
	from := min(max(j.busyFrom, r.workers[j.worker].ended), until)
	return stretch{j.worker, j.need.of.CPUs, from, until}
}

// LastRecord returns the time of the last record applied, or zero if there is none.
func LastRecord(x *Execution) time.Time { return x.now.Time() }

// WorkerHours returns the time that tasks have used up to now, including running tasks. It is sorted by worker, in the
// order in which the run met them, and by hour.
func WorkerHours(x *Execution, now time.Time) []WorkerHour {
	sum := maps.Clone(x.tally.hours)
	at := ToMsec(now)
	_, began := x.roster.lostWork(x.jobs.assigned(), at)
	for _, j := range began {
		sum.use(x.roster.stretch(j, at))
	}
	all := make([]WorkerHour, 0, len(sum))
	for _, key := range slices.SortedFunc(maps.Keys(sum), hourKey.compare) {
		v := sum[key]
		v.Worker, v.Hour = x.roster.workers[key.worker].name, key.hour
		if v.Used != 0 || v.Lost != 0 {
			all = append(all, v)
		}
	}
	return all
}
