package sim

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A run drives an execution as production's driver does (internal/work/run): apply what happened, look at what the
// cluster offers, release what may run. What it is told is its journal.
type run struct {
	*clock
	x         *execution.Execution
	watch     execution.Watch
	cluster   *cluster
	clustered bool // tasks are released several together
	offer     func(at time.Time) execution.Offer

	journal []execution.Record
	applied int  // records of it
	changed bool // what the cluster offers may have, since the last look
	parting parting
	judged  bool          // nothing runs, and a look has said what that means
	wakeAt  time.Duration // when a step is planned
	awake   bool          // one is
	ending  Ending        // empty: it is under way
	why     string
}

// look is how often production's driver looks at what the cluster offers.
const look = time.Second

// note records what happened.
func (r *run) note(rec execution.Record) {
	rec.At = execution.ToMsec(r.time())
	r.journal = append(r.journal, rec)
}

// unread reports whether there are records that the driver has not seen.
func (r *run) unread() bool { return r.applied < len(r.journal) && r.ending == "" }

// step does all there is to do now.
func (r *run) step() {
	if r.ending != "" {
		return
	}
	now := r.time()
	r.read()
	if r.now > 0 {
		r.watch.Look(r.begin.Add((r.now - 1) / look * look)) // the looks since the last step had nothing to see
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

// read applies what happened.
func (r *run) read() {
	for ; r.applied < len(r.journal); r.applied++ {
		rec := r.journal[r.applied]
		r.x.Apply(rec)
		kill(r.cluster, execution.Kills(r.x))
		if rec.Assigned != nil {
			r.watch.Move()
			r.judged = false
		}
	}
}

// look asks what the cluster has to offer, and records what is new.
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

// submit hands the cluster what may run, in the portions in which production does.
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

// allScripts is more than any run has at once.
const allScripts = 1 << 30

// script lets the scripts that are to run end well, in no time: nothing is known of them.
func (r *run) script(now time.Time) {
	at := execution.ToMsec(now)
	for _, c := range execution.Scripts(r.x, now, allScripts) {
		end := &execution.ScriptEnd{Unit: c.Unit, Post: c.Post, Try: c.Try, Round: c.Round, Started: at, Ended: at}
		r.note(execution.Record{Script: end})
	}
}

// A parting is when jobs of several tasks that wait have to be taken apart.
type parting struct {
	at    time.Duration // before that none has, if the same workers stay
	fresh bool          // but for those that were submitted since that was found out
}

// split takes jobs back that no worker has the time for any more, and looks forward to the next.
func (r *run) split() {
	seqs, slack := execution.Misfits(r.x, r.watch.Offer)
	r.cluster.withdraw(seqs)
	if r.parting = (parting{at: Never}); slack < Never-r.now {
		r.parting.at = r.now + slack + 1
	}
}

// worthALook reports whether a look would see anything new: workers or pilots have changed, or jobs that could be
// smaller, or nothing runs any more and it is not known yet whether anything could.
func (r *run) worthALook() bool {
	return r.changed || r.parting.fresh || r.clustered && r.now >= r.parting.at ||
		!r.judged && r.x.Counts().Running == 0
}

// freshen brings the latest offer to what production's latest look has seen: workers that have less time left. It
// matters only for clustered jobs, which are released together if some worker could take them.
func (r *run) freshen() {
	if r.clustered && !r.changed {
		r.watch.Offer = r.offer(r.begin.Add(r.now / look * look))
	}
}

// attend plans a look when there is something to see.
func (r *run) attend() {
	if r.changed && r.ending == "" {
		r.plan()
	}
}

// plan plans the next step: at the end of a back-off, at a look that has something to see, or when the run will have
// stalled. Production looks every second.
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
