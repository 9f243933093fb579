package execution

import (
	"time"
)

// Ends returns the time at which the execution is expected to be over with the given number of cpus. ok is false if
// that cannot be estimated, because no task is done, there are no cpus, or the remaining tasks have exceeded their
// estimates. The remaining time is that of the longest chain, or of the work divided among the cpus, whichever is
// longer, based on estimates corrected by the pace of the tasks that are done. Ends examines every task, so call it
// rarely.
func (x *Execution) Ends(now time.Time, cpus int) (end time.Time, ok bool) {
	pace := paceOf(x)
	if pace == 0 || cpus <= 0 {
		return time.Time{}, false
	}
	behind := behindOf(x, now, pace)
	var work, chain float64 // seconds, because the cpu time of many long tasks can overflow a Duration
	for i := range x.units.tasks {
		if !x.units.state(int32(i)).over() {
			t := &x.plan.Tasks[i]
			ran := min(behind[int32(i)], t.Estimate)
			work += float64(max(1, t.CPUs)) * (t.Estimate - ran).Seconds()
			chain = max(chain, (x.plan.rank[i] - ran).Seconds())
		}
	}
	left := max(chain, work/float64(cpus)) * pace
	if left <= 0 || left > mostTime.Seconds() { // the tasks have exceeded their estimates, or will take years
		return time.Time{}, false
	}
	return now.Add(time.Duration(left * float64(time.Second))), true
}

// paceOf returns the total runtime of the tasks that are done divided by their estimates, or 0 if none is done.
func paceOf(x *Execution) float64 {
	var estimated, took time.Duration
	for i := range x.units.tasks {
		t := x.units.at(int32(i))
		if t.started != 0 && x.units.state(int32(i)) == StateDone {
			estimated += x.plan.Tasks[i].Estimate
			took += max(time.Millisecond, t.ended.sub(t.started))
		}
	}
	if estimated == 0 {
		return 0
	}
	return float64(took) / float64(estimated)
}

// behindOf returns, for each task that runs at now, how much of its estimate has passed, as far as is known. A worker
// with more jobs than cpus may have begun the last of them no earlier than another one ended.
func behindOf(x *Execution, now time.Time, pace float64) map[int32]time.Duration {
	var held []*job
	wanted := make(map[int32]int) // :: worker → cpus
	for _, e := range x.jobs.bySeq {
		if e.worker != 0 {
			held = append(held, e)
			wanted[e.worker] += e.need.of.CPUs
		}
	}
	at := ToMsec(now)
	_, begun := x.roster.lostWork(held, at)
	behind := make(map[int32]time.Duration, len(begun))
	for _, e := range begun {
		since := e.busyFrom
		if w := &x.roster.workers[e.worker]; wanted[e.worker] > w.cpus {
			since = max(since, w.ended)
		}
		behind[x.jobs.remaining(e)[0]] = time.Duration(float64(max(0, at.sub(since))) / pace)
	}
	return behind
}
