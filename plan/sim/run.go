package sim

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A run drives an execution like production's driver (internal/work/run): it applies events, checks the capacity of the
// cluster, and releases tasks. It records the events in its journal.
type run struct {
	*clock
	x         *execution.Execution
	watch     execution.Watch
	cluster   *cluster
	clustered bool // tasks are released in groups
	offer     func(at time.Time) execution.Offer

	journal []execution.Record
	observe func(execution.Record) // nil: the journal is kept
	trace   *Trace
	work    *execution.Spec
	applied int  // number of applied records
	changed bool // the capacity of the cluster may have changed since the last check
	parting parting
	judged  bool          // nothing runs, and a check has determined whether the run will stall
	wakeAt  time.Duration // time of the scheduled step
	awake   bool          // a step is scheduled
	ending  Ending        // empty: the run is in progress
	why     string
}

// look is the interval at which production's driver checks the capacity of the cluster.
const look = time.Second

// note records an event.
func (r *run) note(rec execution.Record) {
	rec.At = execution.ToMsec(r.time())
	r.journal = append(r.journal, rec)
}

// unread reports whether there are records that the driver has not applied.
func (r *run) unread() bool { return r.applied < len(r.journal) && r.ending == "" }

// step performs all actions of the current instant.
func (r *run) step() {
	if r.ending != "" {
		return
	}
	now := r.time()
	r.read()
	if r.now > 0 {
		r.watch.Look(r.begin.Add((r.now - 1) / look * look)) // the skipped checks had no effect
	}
	looked := r.watch.Due(now) && (r.worthALook() || r.watch.Stalled(now))
	if looked {
		r.look(now)
	}
	if r.x.Done() {
		r.finish()
		return
	}
	r.submit(now)
	if looked && r.clustered {
		r.split()
	}
	if looked {
		r.watch.Judge(now, r.x.Shortage(r.watch.Offer))
		r.judged = r.x.Counts().Running == 0
	}
	if r.watch.Stalled(now) {
		r.ending, r.why = Stalled, r.watch.Shortage
		return
	}
	r.plan()
}

// read applies the new records.
func (r *run) read() {
	for ; r.applied < len(r.journal); r.applied++ {
		rec := r.journal[r.applied]
		r.x.Apply(rec)
		r.trace.count(&rec, r.work)
		if r.observe != nil {
			r.observe(rec)
		}
		kill(r.cluster, execution.Kills(r.x))
		if rec.Assigned != nil {
			r.watch.Move()
			r.judged = false
		}
	}
	if r.observe != nil {
		clear(r.journal)
		r.journal, r.applied = r.journal[:0], 0
	}
}

// look updates the capacity of the cluster, and records changes.
func (r *run) look(now time.Time) {
	r.watch.Look(now)
	r.changed = false
	r.watch.Offer = r.offer(now)
	for _, rec := range r.x.News(now, r.watch.Offer) {
		r.note(rec)
		r.x.Apply(rec)
		r.applied++
	}
}

// submit submits released jobs to the cluster, in portions as in production.
func (r *run) submit(now time.Time) {
	r.freshen()
	jobs := r.x.Release(now, r.watch.Offer)
	r.judged = r.judged && len(jobs) == 0
	several := func(j execution.Job) bool { return len(j.Tasks) > 1 }
	r.parting.fresh = r.parting.fresh || slices.ContainsFunc(jobs, several)
	for len(jobs) > 0 {
		n := min(len(jobs), execution.SubmitSize)
		r.cluster.submit(jobs[:n])
		jobs = jobs[n:]
	}
	r.script(now)
}

// allScripts is larger than the number of scripts that a run can have at once.
const allScripts = 1 << 30

// script records that the scripts due now have succeeded and taken no time, because scripts are not modelled.
func (r *run) script(now time.Time) {
	at := execution.ToMsec(now)
	for _, c := range execution.Scripts(r.x, now, allScripts) {
		end := &execution.ScriptEnd{Unit: c.Unit, Post: c.Post, Try: c.Try, Round: c.Round, Started: at, Ended: at}
		r.note(execution.Record{Script: end})
	}
}

// A parting determines when waiting jobs of several tasks have to be split.
type parting struct {
	at    time.Duration // until this time no job has to be split if the workers stay the same
	fresh bool          // jobs of several tasks were submitted since at was computed
}

// split withdraws jobs that need more time than any worker has left, and computes when the next job will have to be
// split.
func (r *run) split() {
	seqs, slack := execution.Misfits(r.x, r.watch.Offer)
	r.cluster.withdraw(seqs)
	if r.parting = (parting{at: Never}); slack < Never-r.now {
		r.parting.at = r.now + slack + 1
	}
}

// worthALook reports whether a check would have an effect: workers or pilots have changed, a job may have to be split,
// or nothing runs and no check has yet determined whether the run will stall.
func (r *run) worthALook() bool {
	return r.changed || r.parting.fresh || r.clustered && r.now >= r.parting.at ||
		!r.judged && r.x.Counts().Running == 0
}

// freshen updates the offer to the offer that production's latest check would have found, because workers had more time
// left then than now. This matters only for clustered jobs, which are released as a group if a worker has enough time
// left for the group.
func (r *run) freshen() {
	if r.clustered && !r.changed {
		r.watch.Offer = r.offer(r.begin.Add(r.now / look * look))
	}
}

// attend schedules the next step if the capacity of the cluster may have changed.
func (r *run) attend() {
	if r.changed && r.ending == "" {
		r.plan()
	}
}

// plan schedules the next step: at the end of a back-off, at the next check that can have an effect, or at the time
// when the run would count as stalled. Production checks every second.
func (r *run) plan() {
	next := Never
	if at, ok := r.x.Next(); ok {
		next = r.since(at)
	}
	if r.worthALook() {
		next = min(next, r.gridAfter(look))
	}
	if r.clustered && r.parting.at < Never {
		next = min(next, max(r.gridAfter(look), (r.parting.at+look-1)/look*look))
	}
	if at, ok := r.watch.StallAt(); ok {
		next = min(next, r.since(at))
	}
	if next < Never && (!r.awake || next < r.wakeAt) {
		r.wakeAt, r.awake = max(r.now, next), true
		at := r.wakeAt
		r.at(at, func() {
			if r.awake && r.wakeAt == at {
				r.awake = false
				r.step()
			}
		})
	}
}

func (r *run) finish() {
	r.ending = Done
	if execution.VerdictOf(r.x).Status != 0 {
		r.ending = Failed
	}
}
