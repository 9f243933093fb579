package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// The names of the invariants, which a failure reports. Some invariants are checked in the state after each step
// (check), the others at the points where they could be violated.
const (
	neverTwo      = "never two live jobs of an attempt"
	nothingIsOver = "nothing is done to what is over"
	twiceIsOnce   = "deciding twice changes nothing"
	comesToRest   = "everything comes to rest when faults stop"
	limitsKept    = "limits are kept"
	nothingLeft   = "a removed site has nothing left on it"
)

// check fails with each violated invariant.
func (f *faulty) check(t *rapid.T) {
	f.checkAlone()
	f.checkLimits()
	f.checkRemoved()
	for name, how := range f.wrong {
		t.Errorf("%s: %s", name, how)
	}
}

// checkAlone: at a site that hides a job no longer than permitted, an attempt has only one live job, which corrald has
// recorded. If a submission arrives after the job was abandoned, there may be two jobs, of which only one starts
// workers.
func (f *faulty) checkAlone() {
	works, there := map[string]*theirJob{}, map[string]*theirJob{}
	recorded := f.live()
	for _, j := range f.site.live(nil) {
		tag := j.of.Tag
		if j.works {
			if other := works[tag]; other != nil {
				f.breaks(neverTwo, fmt.Sprintf("%s and %s both work", other, j))
			}
			works[tag] = j
		}
		if j.stray != "" {
			continue
		}
		if other := there[tag]; other != nil {
			f.breaks(neverTwo, fmt.Sprintf("%s and %s are both there", other, j))
		}
		there[tag] = j
		if !slices.ContainsFunc(recorded, func(r corral.Job) bool { return r.Tag == tag }) {
			f.breaks(neverTwo, fmt.Sprintf("%s lives, and is recorded as over", j))
		}
	}
}

// doubles checks whether a job that is about to be submitted has been at the site for so long that it must have been
// observed, however it was submitted. If it exists beside a job of which corrald could not have been aware, the new job
// is also a stray, because the end of the first job may be mistaken for the end of the new one.
func (f *faulty) doubles(j corral.Job) (stray string) {
	for _, other := range f.site.jobs {
		if other.of.Tag != j.Tag {
			continue
		}
		if !other.vanished && f.site.clock.Sub(other.arrived) >= Visibility {
			f.breaks(neverTwo, fmt.Sprintf("%s is submitted again, and %s has been there since %s", calls(j), other, other.arrived))
		}
		if other.stray != "" {
			stray = "it came in beside " + other.String()
		}
	}
	return stray
}

// spareTheOver: no action concerns an object that has ended.
func (f *faulty) spareTheOver(actions []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case Submit:
			if _, err := f.glidein(a.Glidein); a.Kind == corral.PilotJob && err != nil || f.Site.State.Terminal() {
				f.breaks(nothingIsOver, fmt.Sprintf("%s job of glidein %d at a site that is %s", a.Kind, a.Glidein, f.Site.State))
			}
		case Resume:
			f.spare(a, a.Job)
		case Renew:
			f.spare(a, a.Job)
		case Drain:
			f.spare(a, a.Job)
		case Cancel:
			f.spare(a, a.Job)
		case AskGlidein:
			if _, err := f.glidein(a.Glidein); err != nil {
				f.breaks(nothingIsOver, fmt.Sprintf("glidein %d is asked to %s", a.Glidein, a.Ask))
			}
		case Retime:
			if _, err := f.glidein(a.Glidein); err != nil {
				f.breaks(nothingIsOver, fmt.Sprintf("glidein %d is wanted at another time", a.Glidein))
			}
		case Settle:
			if _, err := f.glidein(a.Glidein); err != nil {
				f.breaks(nothingIsOver, fmt.Sprintf("glidein %d is settled", a.Glidein))
			}
		case MoveSite, UsePackage, Sweep:
			if f.Site.State.Terminal() {
				f.breaks(nothingIsOver, fmt.Sprintf("%T at a site that is %s", a, f.Site.State))
			}
		}
	}
}

func (f *faulty) spare(a Action, j corral.Job) {
	if !f.find(j.ID).Live() {
		f.breaks(nothingIsOver, fmt.Sprintf("%T of %s", a, calls(j)))
	}
}

// heard checks the entries of histories: no object leaves a final state, except that a user may request the removal of
// a failed site.
func (f *faulty) heard(entries []corral.Entry) {
	for _, e := range entries {
		over := e.Object == corral.ObjectJob && e.From == string(corral.JobEnded) ||
			e.Object == corral.ObjectGlidein && corral.GlideinState(e.From).Terminal() ||
			e.Object == corral.ObjectSite && e.From == string(corral.SiteDeleted)
		if over {
			f.breaks(nothingIsOver, fmt.Sprintf("%s %d: %s, %s → %s", e.Object, e.Of, e.Event, e.From, e.To))
		}
	}
}

// decideTwice: deciding does not change the world, and returns the same result again. Once the actions are recorded,
// and before the site has answered, no action is requested a second time, and soon no change is recorded.
func (f *faulty) decideTwice() {
	before := copyOf(f.World)
	first := Decide(f.now, f.World)
	if again := Decide(f.now, f.World); !reflect.DeepEqual(first, again) {
		f.breaks(twiceIsOnce, fmt.Sprintf("first %q, then %q", kinds(first), kinds(again)))
	}
	if !reflect.DeepEqual(before, copyOf(f.World)) {
		f.breaks(twiceIsOnce, "the decision has changed the world")
	}
	const rounds = 6
	asked, next := map[string]bool{}, f.lastJob
	for range rounds {
		recorded := 0
		for _, a := range Decide(f.now, before) {
			c, ok := a.(Change)
			if s, submits := a.(Submit); submits {
				next++
				s.ID, s.Tag = next, fmt.Sprintf("job-%d", next)
				c = s
				what := fmt.Sprintf("the %s job %s of glidein %d", s.Kind, s.Package, s.Glidein)
				if asked[what] {
					f.breaks(twiceIsOnce, what+" is asked for twice")
				}
				asked[what] = true
			}
			if ok {
				entries, _ := before.Apply(c, f.now) // refused if an earlier action has changed the world
				recorded += len(entries)
			}
		}
		if recorded == 0 {
			return
		}
	}
	f.breaks(twiceIsOnce, fmt.Sprintf("after %d times still %q", rounds, kinds(Decide(f.now, before))))
}

// checkRest: at rest no action is half done. The jobs at the site are exactly the jobs that are recorded as live.
func (f *faulty) checkRest() {
	for _, j := range f.live() {
		there := f.site.live(func(s *theirJob) bool { return s.of.Tag == j.Tag })
		if len(there) != 1 || j.Asked != corral.AskNothing || j.State != corral.JobRunning {
			f.breaks(comesToRest, fmt.Sprintf("%s is %s, asked to %q, and has %d jobs at the site", calls(j), j.State, j.Asked, len(there)))
		}
	}
	for _, g := range f.Glideins {
		if !g.State.Terminal() && g.Asked != corral.AskNothing {
			f.breaks(comesToRest, fmt.Sprintf("glidein %d is %s, asked to %s", g.ID, g.State, g.Asked))
		}
	}
	switch f.Site.State {
	case corral.SiteReady, corral.SiteFailed, corral.SiteDeleted:
	default:
		f.breaks(comesToRest, "the site is "+string(f.Site.State))
	}
	if f.Site.State == corral.SiteDeleted && len(f.site.live(func(s *theirJob) bool { return s.stray == "" })) > 0 {
		f.breaks(nothingLeft, "its jobs live on")
	}
}

// checkLimits: neither the recorded jobs nor the actual jobs exceed the site's limits.
func (f *faulty) checkLimits() {
	if broken := limitBroken(f.now, f.World, f.asked); broken != "" {
		f.breaks(limitsKept, broken)
	}
	waits, all := 0, 0
	for _, j := range f.site.live(func(j *theirJob) bool { return j.of.Kind == corral.PilotJob && j.stray == "" }) {
		if all++; j.started.IsZero() {
			waits++
		}
	}
	if m := f.Site.Limits; m.MaxQueued > 0 && waits > m.MaxQueued || m.MaxRunning > 0 && all > m.MaxRunning {
		f.breaks(limitsKept, fmt.Sprintf("%d pilots wait at the site, and there are %d, above %+v", waits, all, m))
	}
}

// wants: another attempt is requested only as often as the glidein's policy allows. With an overlap the attempts may
// end in a different order, and only expired attempts are distinguished.
func (f *faulty) wants(a Submit) {
	if a.Kind != corral.PilotJob {
		tries := 0
		for i := len(f.Jobs) - 1; i >= 0 && f.Jobs[i].Kind == a.Kind && f.Jobs[i].Outcome != corral.OutcomeDone; i-- {
			tries++
		}
		if a.Move == "" && tries >= maxSiteJobs { // with a move, a user has requested it again
			f.breaks(limitsKept, fmt.Sprintf("%s job number %d in a row", a.Kind, tries+1))
		}
		return
	}
	f.asked = append(f.asked, f.now)
	g, err := f.glidein(a.Glidein)
	if err != nil {
		return
	}
	fate, live := f.fates[g.ID], len(g.Live())
	switch p := g.Resubmit; {
	case p.Mode != resubmit.Forever && fate.expired+live > p.Limit,
		g.Overlap == 0 && (fate.final || fate.failures > p.Retries):
		f.breaks(limitsKept, fmt.Sprintf("glidein %d gets another attempt after %+v, %d alive, by %+v", g.ID, *fate, live, p))
	}
}

// count counts the end of an attempt for wants.
func (f *faulty) count(g corral.GlideinID, e corral.JobEvent) {
	fate := f.fates[g]
	switch {
	case fate == nil || e.Outcome == corral.OutcomeDuplicate: // no attempt, or an attempt that provides no evidence
	case e.Outcome == corral.OutcomeExpired:
		fate.expired, fate.failures = fate.expired+1, 0
	case e.Transient:
		fate.failures++
	default:
		fate.final = true
	}
}

// checkRemoved: an object that was removed, unless by force, has neither a job nor a file at the site.
func (f *faulty) checkRemoved() {
	if f.Site.State != corral.SiteDeleted || f.forced {
		return
	}
	var left []string
	for _, j := range f.site.live(func(j *theirJob) bool { return j.stray == "" }) {
		left = append(left, j.String())
	}
	if f.site.installed {
		left = append(left, "its root directory")
	}
	if len(left) > 0 {
		f.breaks(nothingLeft, strings.Join(left, ", "))
	}
}
