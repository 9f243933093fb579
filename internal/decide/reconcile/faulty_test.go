package reconcile

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// A faulty runs one site's world as the engine does, with every possible fault of the site and of the connection to the
// site. The recorded state is the rig's World, which survives a crash unchanged; the contents of corrald's memory are
// lost in a crash.
//
// It decides, records, and counts missing jobs with the engine's own functions: Events, Decide, Apply, Missing. Only
// the order of operations within a step is duplicated from the engine.
type faulty struct {
	*rapid.T
	*rig
	site    *faultySite
	missing Missing
	faults  bool // faults occur; otherwise all requests are carried out at once
	forced  bool // the site was removed by force

	asked []time.Time // when attempts were requested
	fates map[corral.GlideinID]*fate
	wrong map[string]string // :: name of an invariant → how it was first broken
}

// A fate counts the results of a glidein's attempts.
type fate struct {
	expired  int
	failures int  // consecutive failures
	final    bool // the last attempt was not to be followed by another
}

// breaks records a violated invariant.
func (f *faulty) breaks(invariant, how string) {
	if f.wrong[invariant] == "" {
		f.wrong[invariant] = how
	}
}

// fault draws one of the ways, of which the first is the way without faults.
func (f *faulty) fault(what string, ways ...string) string {
	if !f.faults {
		return ways[0]
	}
	mostly := slices.Repeat(ways[:1], 2*len(ways)) // otherwise runs would rarely last long enough for more faults
	return rapid.SampledFrom(append(mostly, ways...)).Draw(f.T, what)
}

// step performs one step of the engine, and returns the number of actions and changes. It ends early whenever the
// engine would: at the first error, or when corrald itself ends.
func (f *faulty) step() (did int) {
	if f.site.clock.Before(f.site.silent) {
		return f.giveUp()
	}
	f.hold(f.now) // as the store does on each read
	did, ok := f.observe()
	if !ok {
		return did
	}
	f.decideTwice()
	actions := Decide(f.now, f.World)
	f.spareTheOver(actions)
	slices.SortStableFunc(actions, func(a, b Action) int { return later(a) - later(b) })
	for _, a := range actions {
		n, ok := f.act(a)
		if did += n; !ok {
			break
		}
	}
	return did
}

// later returns 0 for actions that are performed first, because ending jobs makes room for new ones.
func later(a Action) int {
	if _, ok := a.(Cancel); ok {
		return 0
	}
	return 1
}

// giveUp ends the jobs of a site that was removed by force and does not answer.
func (f *faulty) giveUp() (did int) {
	if f.Site.State != corral.SiteDeleted {
		return 0
	}
	for _, j := range f.live() {
		for _, there := range f.site.live(func(s *theirJob) bool { return s.of.Tag == j.Tag }) {
			there.stray = "its site was removed by force, and did not answer"
		}
		did += f.move(j, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeLost, Transient: true})
	}
	return did
}

// observe polls the live jobs and records changes.
func (f *faulty) observe() (did int, ok bool) {
	var age time.Duration
	live := f.live()
	if len(live) == 0 {
		return 0, true
	}
	switch f.fault("poll", "answered", "failed", "old by 1 s", "old by 2 s") {
	case "failed":
		return 0, false
	case "old by 1 s":
		age = time.Second
	case "old by 2 s":
		age = 2 * time.Second
	}
	for _, j := range live {
		s, extra := f.site.poll(j.Tag, age)
		s = f.missing.Looked(j.Tag, s, f.now)
		for _, e := range extra {
			did++
			switch f.fault("cancel of "+e.String(), "done", "lost", "failed") {
			case "failed":
				return did, false
			case "lost":
				e.stray = "its cancel was lost"
			default:
				f.site.end(e, ByCancel, nil)
			}
		}
		s.Overdue, s.Hopeless = f.Overdue(j)
		for _, e := range Events(j, s, f.now) {
			did += f.move(j, e)
		}
	}
	return did, true
}

// move records a move of a job.
func (f *faulty) move(j corral.Job, e corral.JobEvent) (did int) {
	f.Helper()
	entries := f.must(MoveJob{j.ID, e})
	f.heard(entries)
	if e.Move == corral.JobEnd {
		f.missing.Forget(j.Tag)
		f.count(j.Glidein, e)
		if j.Kind == corral.SetupJob && e.Outcome == corral.OutcomeDone {
			f.Installed.Lost = false
		}
	}
	return len(entries)
}

// act performs one action. ok is false if corrald did not reach the next action.
func (f *faulty) act(a Action) (did int, ok bool) {
	switch a := a.(type) {
	case Resume:
		if f.missing.MayCome(a.Job.Tag, f.now) {
			return 0, true
		}
		return f.submit(a.Job)
	case Sweep:
		return f.sweep()
	case Submit:
		if a.Kind == corral.SetupJob {
			f.Site.PackageDigest, f.site.installed = digest, true // the package is transferred to the site first
		}
		f.wants(a)
	}
	entries := f.perform(a)
	f.heard(entries)
	switch a := a.(type) {
	case Submit:
		if len(entries) == 0 { // the world has changed since
			return 0, false
		}
		_, ok = f.submit(f.find(f.lastJob))
		return len(entries) + 1, ok
	case Cancel:
		return len(entries) + 1, f.cancel(a.Job)
	case Drain:
		f.drain(a.Job)
	}
	return len(entries), true
}

// submit submits a job whose intent is recorded to the site.
func (f *faulty) submit(j corral.Job) (did int, ok bool) {
	f.missing.Forget(j.Tag)
	if !f.find(j.ID).Live() {
		f.breaks(nothingIsOver, calls(j)+" is submitted, and is over")
	}
	hidden := time.Duration(0)
	answer := f.fault("submission of "+calls(j), "accepted", "accepted, and the answer is lost", "it never arrives", "it arrives late", "it arrives twice", "it arrives twice", "it arrives twice",
		"refused", "corrald crashes before it", "corrald crashes after it")
	switch answer {
	case "corrald crashes before it":
		f.crash()
		return 1, false
	case "it never arrives":
		return 1, false
	case "it arrives late":
		f.fly(j)
		return 1, false
	case "it arrives twice":
		f.fly(j)
	case "refused":
		return f.move(j, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Transient: true, Reason: "refused"}), true
	}
	if f.faults {
		hidden = time.Duration(rapid.IntRange(0, 2).Draw(f.T, "hidden for seconds")) * time.Second
	}
	there := f.site.arrive(j, hidden, f.doubles(j))
	there.deaf = f.faults && rapid.IntRange(0, 3).Draw(f.T, "deaf") == 3
	switch answer {
	case "corrald crashes after it":
		f.crash()
		return 1, false
	case "it arrives twice":
		there.stray = "it came in twice"
		fallthrough
	case "accepted":
		return f.move(j, corral.JobEvent{Move: corral.JobSubmit, SiteJobID: there.String()}), true
	}
	return 1, false
}

// fly delays the arrival of a submission until its answer is no longer awaited.
func (f *faulty) fly(j corral.Job) {
	after := time.Duration(rapid.SampledFrom([]int{1, 1, 6, 7, 8, 10, 20, 600}).Draw(f.T, "seconds later")) * time.Second
	f.site.flown = append(f.site.flown, flight{j, f.site.clock.Add(after)})
}

// cancel ends a job at the site, once the request for its end is recorded.
func (f *faulty) cancel(j corral.Job) (ok bool) {
	switch f.fault("cancel of "+calls(j), "done", "lost", "corrald crashes before it", "corrald crashes after it") {
	case "done":
		f.site.cancel(j.Tag)
	case "corrald crashes before it":
		f.crash()
		return false
	case "corrald crashes after it":
		f.site.cancel(j.Tag)
		f.crash()
		return false
	}
	return true
}

// drain orders an attempt's pilot to leave after it has finished its tasks.
func (f *faulty) drain(j corral.Job) {
	if f.fault("drain of "+calls(j), "it leaves", "it has tasks yet") != "it leaves" {
		return
	}
	for _, there := range f.site.live(func(s *theirJob) bool { return s.of.Tag == j.Tag && s.works }) {
		f.site.end(there, "", &Report{Outcome: corral.OutcomeDrained})
	}
}

// sweep removes the site's directories, then forgets the site.
func (f *faulty) sweep() (did int, ok bool) {
	how := f.fault("sweep", "done", "failed", "done, and the answer is lost", "corrald crashes after it")
	if how == "failed" {
		return 1, false
	}
	f.site.installed = false
	switch how {
	case "done":
		entries := f.must(MoveSite{Move: corral.SiteUnstaged})
		f.heard(entries)
		return len(entries), true
	case "corrald crashes after it":
		f.crash()
	}
	return 1, false
}

// crash ends corrald, and starts another corrald, which reads the recorded state again, as package worldstate would.
func (f *faulty) crash() {
	f.missing = Missing{}
	f.World = copyOf(f.World)
	f.Installed = Installed{}
	f.Glideins = slices.DeleteFunc(f.Glideins, func(g corral.Glidein) bool { return g.State.Terminal() })
	f.Over = slices.DeleteFunc(f.Over, func(j corral.Job) bool { return j.CreatedAt.Before(f.now.Add(-SubmitWindow)) })
	f.index = newIndex(f.World)
	f.hold(f.now)
}

// copyOf returns a copy of a world that Apply can use as an independent world.
func copyOf(w World) World {
	w.index = nil
	w.Told, w.Over, w.Jobs, w.Glideins = slices.Clone(w.Told), slices.Clone(w.Over), slices.Clone(w.Jobs), slices.Clone(w.Glideins)
	for i := range w.Glideins {
		w.Glideins[i].Attempts = slices.Clone(w.Glideins[i].Attempts)
	}
	return w
}
