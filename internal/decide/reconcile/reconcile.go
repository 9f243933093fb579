// Package reconcile decides which actions to take for one site: it is the pure core of the engine.
//
// The package has two central functions. Events converts the reports of a site and its jobs to moves of jobs; Decide
// derives actions from the recorded world. Both functions are free of I/O and read no clock, and both return the same
// result if they are called again on the same world, so a crash between any two steps only loses that step. Due returns
// the time until which Decide returns the same result, unless an event occurs.
//
// The effects of an action or an event on the recorded world are not decided here: these rules belong to the types of
// package corral. The store applies them in its transactions, and World.Apply applies them in memory, so that a test or
// a simulation can play the whole life of a site in microseconds; testdata/lives contains examples.
//
// The engine records the intent of an action before it acts. If the intent of a job is recorded but its submission
// was never answered, the job is looked up by its tag before it is submitted again.
//
// The following invariant holds: at most one attempt of a glidein is requested at a time, or two with an overlap.
package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// A World holds all recorded data about one site. Apply keeps the first block of fields consistent with the store; the
// caller sets the other fields.
type World struct {
	Site     corral.Site
	Held     corral.Hold      // follows from Told
	Told     []corral.Job     // the last ended attempts that provide evidence about the site, by end time
	Jobs     []corral.Job     // its setup and cleanup jobs, oldest first
	Glideins []corral.Glidein // by id, each in brief; ended glideins have left, or will leave soon and do not count
	Later    time.Time        // when the first glidein begins to matter that is absent because of Ahead
	Over     []corral.Job     // ended attempts: at least all that were requested in the last SubmitWindow

	Needs     map[corral.ClusterID]Need // :: HTCondor cluster of a glidein → needs of its glideins
	Tokens    map[corral.JobID]Token    // :: waiting attempt → the pool token that it certainly has
	Lifetimes Lifetimes                 // of new tokens
	Waits     []corral.Wait             // the site's latest, if a glidein overlaps, in the order of their submission
	Installed Installed                 // packages at the site

	Hopeless map[corral.JobID]time.Time  // :: waiting job → since when its site has refused to ever start it
	NoRelay  map[corral.GlideinID]string // :: glidein that needs the site's relay → why the relay does not run

	Suspended string // why no new jobs may be requested for the site's owner; "": they may

	index *index // index of the first block; nil before the first Apply
}

// Installed holds information about a site's worker packages beyond the evidence of its jobs.
type Installed struct {
	Lost   bool                 // the site's own package has disappeared
	Newer  Package              // package that will replace the site's own package; zero: none
	Missed map[string]time.Time // :: digest of a package → start time of a pilot that did not find it
}

// An Action is a single action to take at a site. The engine performs actions in order.
type Action interface {
	// Why returns the reason for the action in one line, for the log.
	Why() string
}

type (
	// Submit requests a new job: first its row records the intent, then the site is called. The executor sets ID and
	// Tag.
	Submit struct {
		ID      corral.JobID // used by Apply; the store numbers jobs itself
		Tag     string       // unique; the site identifies the job by it
		Kind    corral.JobKind
		Glidein corral.GlideinID // set only for pilot jobs
		Package string           // digest of the package that a setup job installs; empty: the site's own package
		Move    corral.SiteMove  // the site's move that belongs to the same intent, if any; never set for a pilot job
		Reason  string
	}

	// Resume continues a job whose intent is recorded but whose submission was never answered: the job is looked up by
	// its tag and submitted again only if the site does not have it.
	Resume struct{ Job corral.Job }

	// Renew replaces the token of a waiting attempt for its HTCondor pool.
	Renew struct{ Job corral.Job }

	// Drain orders a running attempt to finish its tasks and leave.
	Drain struct{ Job corral.Job }

	// Cancel ends a job at its site, by force if necessary.
	Cancel struct {
		Job    corral.Job
		Reason string
	}

	// AskGlidein passes the removal of the site on to a glidein.
	AskGlidein struct {
		Glidein corral.GlideinID
		Ask     corral.Ask
		Reason  string
	}

	// Retime sets the time when a follower is wanted, once the glidein that it follows is running.
	Retime struct {
		Glidein corral.GlideinID
		At      time.Time
		Reason  string
	}

	// Settle records a glidein's derived state if it differs from the recorded state.
	Settle struct {
		Glidein corral.GlideinID
		Lack    corral.Lack
	}

	// MoveSite moves the site to another state.
	MoveSite struct {
		Move   corral.SiteMove
		Reason string
	}

	// UsePackage makes the site's next pilots use a package that was installed there instead of the site's own package.
	UsePackage struct{ Package Package }

	// Sweep removes what is left of the site's root directory, then moves the site to DELETED.
	Sweep struct{}
)

func (a Submit) Why() string { return a.Reason }
func (a Resume) Why() string { return "the submission of " + a.Job.Tag + " was never answered" }
func (a Renew) Why() string {
	return "the token of " + a.Job.Name() + " may end before its workers leave"
}
func (a Drain) Why() string      { return "asked to drain" }
func (a Cancel) Why() string     { return a.Reason }
func (a AskGlidein) Why() string { return a.Reason }
func (a Retime) Why() string     { return a.Reason }
func (a Settle) Why() string     { return "what its attempts say has changed" }
func (a MoveSite) Why() string   { return a.Reason }
func (a UsePackage) Why() string { return "package " + a.Package.Name + " is installed there" }
func (a Sweep) Why() string      { return "no job is needed at the site any more" }

// maxSiteJobs is the maximum number of tries of a setup or cleanup job before the site fails.
const maxSiteJobs = 3

// siteJobBackoff is the time between the first two tries; it is doubled after each further try.
const siteJobBackoff = 2 * time.Second

// Decide returns the actions to take for the site at now, in order.
func Decide(now time.Time, w World) []Action {
	var actions []Action
	turns := takeTurns(now, &w)
	for i := range w.Glideins {
		actions = append(actions, glidein(now, &w, &w.Glideins[i], turns)...)
	}
	return unlessSuspended(&w, unlessExpired(now, &w, slices.Concat(actions, turns.submits, site(now, &w))))
}

// site decides about the site itself, according to its state. Each state has one purpose: the setup job, the packages
// that glideins need, emptying the site, or the cleanup job. In the last two states all jobs that remain at the site
// are cancelled.
func site(now time.Time, w *World) []Action {
	switch w.Site.State {
	case corral.SiteNew:
		return []Action{Submit{Kind: corral.SetupJob, Move: corral.SiteStage, Reason: "the site is new"}}
	case corral.SiteStaging:
		return siteJob(now, w, corral.SetupJob, MoveSite{Move: corral.SiteStaged})
	case corral.SiteReady:
		if w.Installed.Lost && !slices.ContainsFunc(w.Jobs, corral.Job.Live) { // only one setup job runs at a time
			const lost = "the site has lost its package"
			return []Action{Submit{Kind: corral.SetupJob, Move: corral.SiteStage, Reason: lost}}
		}
		return staging(now, w)
	case corral.SiteExiting:
		return exiting(w)
	case corral.SiteRemoving:
		if w.Site.PackageDigest == "" {
			return []Action{Sweep{}}
		}
		return siteJob(now, w, corral.CleanupJob, Sweep{})
	case corral.SiteDeleted, corral.SiteFailed:
		return cancelAll(w.Jobs, "the site is "+string(w.Site.State))
	}
	return nil
}

// siteJob decides about the site's setup or cleanup job: success leads to next, failure to another try or to the
// failure of the site.
func siteJob(now time.Time, w *World, kind corral.JobKind, next Action) []Action {
	tries, last := lastOf(w.Jobs, kind)
	ended := fmt.Sprintf("%s job %d %s: %s", kind, last.Number, last.Outcome, last.Reason)
	switch {
	case tries == 0:
		return []Action{Submit{Kind: kind, Reason: "none was submitted yet"}}
	case last.State == corral.JobNew:
		return []Action{Resume{last}}
	case last.Live():
		return serving(now, w, last)
	case last.Outcome == corral.OutcomeDone:
		return []Action{next}
	case kind == corral.CleanupJob && last.Outcome == corral.OutcomeFailed && last.SubmittedAt.IsZero():
		return []Action{next} // refused, for example because a disk is full: sweeping needs no space, but frees space
	case retryable(last) && tries < maxSiteJobs:
		if now.Before(retryAt(now, tries, last)) {
			return nil
		}
		return []Action{Submit{Kind: kind, Reason: ended}}
	}
	return []Action{MoveSite{corral.SiteFail, ended}}
}

// retryAt returns the time when a setup or cleanup job may be followed by another one, given that it was the last of
// that many tries.
func retryAt(now time.Time, tries int, last corral.Job) time.Time {
	at := last.EndedAt.Add(siteJobBackoff << (min(tries, maxSiteJobs) - 1))
	if at.Sub(now) > time.Minute { // back-offs are shorter than this: the clock was set back
		return now
	}
	return at
}

// lastOf returns the number of jobs of this kind since the last successful job, and the last job of this kind. Setup
// jobs for packages other than the site's own do not count.
func lastOf(jobs []corral.Job, kind corral.JobKind) (tries int, last corral.Job) {
	for _, j := range jobs {
		if j.Kind != kind || j.Package != "" {
			continue
		}
		if last.Outcome == corral.OutcomeDone {
			tries = 0
		}
		tries, last = tries+1, j
	}
	return tries, last
}

// retryable reports whether another try of a setup or cleanup job may succeed.
func retryable(j corral.Job) bool {
	return j.Transient || j.Outcome == corral.OutcomeLost || j.Outcome == corral.OutcomePreempted
}

// exiting passes the removal on to the glideins and the setup job. When no job is live the cleanup job follows, unless
// the site never reached a state in which a job could have run there.
func exiting(w *World) []Action {
	const reason = "the site is being removed"
	actions := cancelAll(w.Jobs, reason)
	busy := len(actions) > 0
	for i := range w.Glideins {
		g := &w.Glideins[i]
		if !g.State.Terminal() && g.Asked != corral.AskCancel {
			actions = append(actions, AskGlidein{g.ID, corral.AskCancel, reason})
			busy = true
		}
		busy = busy || len(g.Live()) > 0
	}
	if busy {
		return actions
	}
	if w.Site.PackageDigest == "" {
		return []Action{MoveSite{corral.SiteEmptied, "nothing was installed there"}}
	}
	return []Action{Submit{Kind: corral.CleanupJob, Move: corral.SiteEmptied, Reason: reason}}
}

// cancelAll ends the live setup and cleanup jobs.
func cancelAll(jobs []corral.Job, reason string) []Action {
	var actions []Action
	for _, j := range jobs {
		if j.Live() {
			actions = append(actions, Cancel{j, reason})
		}
	}
	return actions
}

// steady reports whether a glidein only runs: its single live attempt is running, no other attempt will overlap it, and
// nothing was asked. Only an event can change such a glidein. Most glideins of a large world are steady.
func steady(g *corral.Glidein) bool {
	n := len(g.Attempts)
	return n > 0 && g.Attempts[n-1].State == corral.JobRunning && g.Overlap == 0 && g.Asked == corral.AskNothing &&
		g.Attempts[n-1].Asked == corral.AskNothing && (n == 1 || !g.Attempts[n-2].Live())
}

// glidein decides about one glidein, except for its turn to submit another attempt.
func glidein(now time.Time, w *World, g *corral.Glidein, turns turns) []Action {
	var actions []Action
	if w.Site.State == corral.SiteReady && steady(g) && g.Current(w.Site.State, w.Held, corral.Lack{}, now) {
		return nil
	}
	if retime, ok := follow(now, w, g); ok {
		return append(actions, retime)
	}
	for _, a := range g.Live() {
		actions = append(actions, attempt(now, w, g, a)...)
	}
	if turns.has(g.ID) {
		return actions
	}
	lack := keeps(now, w, g)
	if lack == (corral.Lack{}) {
		lack = turns.lacks[g.ID]
	}
	if !g.Current(w.Site.State, w.Held, lack, now) {
		actions = append(actions, Settle{g.ID, lack})
	}
	return actions
}

// attempt decides about one live attempt. Requests concerning the attempt and its glidein have the same effect. Only a
// pilot that can receive the order can be drained. A pilot that is waiting or has no link to corrald is cancelled
// instead, because no work would be lost or because there is no other way.
func attempt(now time.Time, w *World, g *corral.Glidein, a corral.Job) []Action {
	asked := func(ask corral.Ask) bool { return g.Asked == ask || a.Asked == ask }
	switch drain := asked(corral.AskDrain); {
	case w.Site.State == corral.SiteFailed, w.Site.State == corral.SiteDeleted:
		return []Action{Cancel{a, "the site is " + string(w.Site.State)}}
	case asked(corral.AskCancel):
		return []Action{Cancel{a, "asked to cancel"}}
	case drain && a.State == corral.JobRunning && a.LeaseHolder != "":
		return []Action{Drain{a}}
	case drain && a.Workers > 0: // the attempt's jobs return to the pool's queue
		return []Action{Cancel{a, "asked to drain, and its pilot has no link through which it could be told"}}
	case drain:
		return []Action{Cancel{a, "asked to drain before its pilot came"}}
	case a.State != corral.JobRunning:
		return waiting(now, w, g, a)
	}
	return nil
}

// wantsAttempt reports whether another attempt should be submitted as soon as the site has room for it, and why.
func wantsAttempt(now time.Time, w *World, g *corral.Glidein, live []corral.Job) (bool, string) {
	switch {
	case w.Site.State != corral.SiteReady, now.Before(w.Held.Until), steady(g):
		return false, ""
	case g.Asked != corral.AskNothing, g.State.Terminal(), now.Before(g.NotBefore), keeps(now, w, g) != corral.Lack{}:
		return false, ""
	}
	if _, retimes := follow(now, w, g); retimes {
		return false, ""
	}
	if len(live) > 0 {
		return wantsOverlap(now, w, g, live)
	}
	verdict, notBefore, why := g.Next(now)
	return verdict == resubmit.Again && !now.Before(notBefore), why
}
