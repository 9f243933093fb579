package execution

import (
	"time"

	"github.com/corral-pilot/corral/workflow/profile"
)

// Ends returns the time at which the execution is expected to be over with the given number of cpus. ok is false if
// that cannot be estimated, because no task is done, there are no cpus, or the remaining tasks have exceeded their
// estimates. The remaining time is that of the longest chain, or of the work divided among the cpus, whichever is
// longer, based on estimates corrected by the tasks of each kind that are done. Ends examines every task, so call it
// rarely.
func (x *Execution) Ends(now time.Time, cpus int) (end time.Time, ok bool) {
	factors := factorsOf(x)
	if factors.done == 0 || cpus <= 0 {
		return time.Time{}, false
	}
	elapsed := elapsedOf(x, now)
	left := make([]time.Duration, len(x.units.tasks))
	var work float64 // seconds, because the cpu time of many long tasks can overflow a Duration
	for i := range left {
		if x.units.state(int32(i)).over() {
			continue
		}
		t := &x.plan.Tasks[i]
		expected := min(t.Estimate.Seconds()*factors.of(t), 2*mostTime.Seconds())
		left[i] = max(0, time.Duration(expected*float64(time.Second))-elapsed[int32(i)])
		work += float64(max(1, t.CPUs)) * left[i].Seconds()
	}
	rest := max(x.plan.Graph.CriticalPath(left).Seconds(), work/float64(cpus))
	if rest <= 0 || rest > mostTime.Seconds() { // the tasks have exceeded their estimates, or will take years
		return time.Time{}, false
	}
	return now.Add(time.Duration(rest * float64(time.Second))), true
}

// factors holds the corrections of estimates by the tasks that are done.
type factors struct {
	done   int                          // tasks
	byKind map[int32]profile.Correction // with estimates of their own
	usual  map[int32]profile.Correction // with the run's default
	any    profile.Correction           // all with the run's default
}

func factorsOf(x *Execution) factors {
	f := factors{byKind: map[int32]profile.Correction{}, usual: map[int32]profile.Correction{}}
	for i := range x.units.tasks {
		u, t := x.units.at(int32(i)), &x.plan.Tasks[i]
		if u.started == 0 || u.state != StateDone {
			continue
		}
		took := max(time.Millisecond, u.ended.sub(u.started))
		f.done++
		if t.Usual {
			f.usual[t.Kind] = f.usual[t.Kind].With(took, t.Estimate)
			f.any = f.any.With(took, t.Estimate)
		} else {
			f.byKind[t.Kind] = f.byKind[t.Kind].With(took, t.Estimate)
		}
	}
	return f
}

// of returns the factor by which a task is expected to take longer than estimated. A task with the run's default, of a
// kind of which none is done, is expected to take as long as other tasks with the default.
func (f factors) of(t *TaskSpec) float64 {
	if !t.Usual {
		factor, _ := f.byKind[t.Kind].Factor(false)
		return factor
	}
	factor, ok := f.usual[t.Kind].Factor(true)
	if !ok {
		factor, _ = f.any.Factor(true)
	}
	return factor
}

// elapsedOf returns, for each task that runs at now, the time since it began, as far as is known. A worker with more
// jobs than cpus may have begun the last of them no earlier than another one ended.
func elapsedOf(x *Execution, now time.Time) map[int32]time.Duration {
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
	elapsed := make(map[int32]time.Duration, len(begun))
	for _, e := range begun {
		since := e.busyFrom
		if w := &x.roster.workers[e.worker]; wanted[e.worker] > w.cpus {
			since = max(since, w.ended)
		}
		elapsed[x.jobs.remaining(e)[0]] = max(0, at.sub(since))
	}
	return elapsed
}
