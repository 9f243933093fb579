package execution

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The time that tasks took of workers is kept by worker and hour, for accounting. It is a function of the records that
// were applied, like all of an Execution: the total of a run is the same after any crash, and replaces the total that
// was stored before.
//
// The last attempt at a task counts as used when it ends. When the task gets another attempt, for whatever reason, that
// time moves to the lost time. It is unknown when attempts began that vanished with their worker: their time is
// estimated like the lost work in the report, rather too low than too high.

// A WorkerHour is the time that tasks took of a worker's cpus within an hour.
type WorkerHour struct {
	Worker string
	Hour   int64 // since 1970, UTC
	Used   Msec  // of a cpu
	Lost   Msec  // of a cpu, by attempts that were repeated
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

// A stretch is a time in which an attempt had some cpus of a worker.
type stretch struct {
	worker   int32
	cpus     int
	from, to Msec
}

const msecPerHour = Msec(time.Hour / time.Millisecond)

// lastMsec is thousands of years from now, and far from overflowing.
const lastMsec = Msec(1) << 50

// add adds the time of a stretch to the used time and to the lost time, each 1, 0 or -1 times. A worker's report of
// more than a year is not believed.
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
func (h hours) waste(s stretch) { h.add(s, -1, 1) } // that were used

// stretch is the time of the last attempt at a task that ended.
func (x *Execution) stretch(i int32) stretch {
	from, to := x.span(i)
	return stretch{x.units.at(i).worker, x.plan.Tasks[i].CPUs, from, to}
}

// stretch is the time that a job has had its worker, as far as that is known.
func (r *roster) stretch(j *job, until Msec) stretch {
	from := min(max(j.busyFrom, r.workers[j.worker].ended), until)
	return stretch{j.worker, j.need.of.CPUs, from, until}
}

// LastRecord returns the time of the last record that was applied, zero if there is none.
func LastRecord(x *Execution) time.Time { return x.now.Time() }

// WorkerHours returns the time that the tasks took up to now, those that are running included, by worker in the order
// in which they were met, and by hour.
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
