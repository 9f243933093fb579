package execution

import (
	"time"
)

// Ends returns when the execution is expected to be over on the given number of cpus; ok is false as long as that
// cannot be estimated, because no task is done, there are no cpus, or the remaining tasks have outlived their
// estimates. The remaining tasks take as long as their longest chain, or as their work spread over the cpus, whichever
// is longer: by their estimates, corrected by the pace of the tasks that are done. It looks at every task, so call it
// rarely.
func (x *Execution) Ends(now time.Time, cpus int) (end time.Time, ok bool) {
	pace := paceOf(x)
	if pace == 0 || cpus <= 0 {
		return time.Time{}, false
	}
	behind := behindOf(x, now, pace)
	var work, chain float64 // seconds: cpu time of many long tasks is more than a Duration holds
	for i := range x.units.tasks {
		if !x.units.state(int32(i)).over() {
			t := &x.plan.Tasks[i]
			ran := min(behind[int32(i)], t.Estimate)
			work += float64(max(1, t.CPUs)) * (t.Estimate - ran).Seconds()
			chain = max(chain, (x.plan.rank[i] - ran).Seconds())
		}
	}
	left := max(chain, work/float64(cpus)) * pace
	if left <= 0 || left > mostTime.Seconds() { // the tasks have outlived their estimates, or will take for years
		return time.Time{}, false
	}
	return now.Add(time.Duration(left * float64(time.Second))), true
}

// paceOf returns the time that the tasks took that are done, divided by their estimates; 0: none is done.
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

// behindOf returns which part of their estimates the tasks have behind them that run at now, as far as is known. A
// worker that has more jobs than it has cpus for may have begun the last of them no earlier than another one ended.
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
