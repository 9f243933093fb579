// Package reconcile decides what to do about one site: it is the pure middle of the engine.
//
// It has two central functions. Events turns the reports of a site and its jobs into moves of jobs; Decide turns the
// recorded world into actions. Neither does I/O nor reads a clock, and both may be called again on the same world
// with the same answer, so a crash between any two steps costs nothing but the step. Due returns until when Decide
// gives the same answer, unless something happens.
//
// The effects of an action or an event on the recorded world are not decided here: those rules belong to the nouns of
// package corral. The store follows them in its transactions, and World.Apply in memory, so that a test or a
// simulation can play whole lives of a site in microseconds; testdata/lives contains some to read.
//
// The engine records the intent of an action before it acts. If the intent of a job is recorded but its submission
// was never answered, the job is looked up by its tag before it is submitted again.
//
// The invariant: at most one attempt of a glidein is requested at a time, two only with overlap.
package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// A World is everything recorded about one site. Apply keeps the first block consistent with the store; the caller
// sets the rest.
type World struct {
	Site     corral.Site
	Held     corral.Hold      // follows from Told
	Told     []corral.Job     // the last ended attempts that provide evidence about the site, by end time
	Jobs     []corral.Job     // its setup and cleanup jobs, oldest first
	Glideins []corral.Glidein // by id, each in brief; those that have ended have left, or will soon and do not count
	Later    time.Time        // when the first glidein starts to matter that is absent because it is over Ahead away
	Over     []corral.Job     // ended attempts: at least those requested in the last SubmitWindow

	Needs     map[corral.ClusterID]Need // :: HTCondor cluster of a glidein → needs of its glideins
	Tokens    map[corral.JobID]Token    // :: waiting attempt → the pool token that it certainly has
	Lifetimes Lifetimes                 // of new tokens
	Waits     []corral.Wait             // the site's latest, if a glidein overlaps, in the order of their submission
	Installed Installed                 // packages at the site

	Hopeless map[corral.JobID]time.Time  // :: waiting job → since when its site has reported that it never starts it
	NoRelay  map[corral.GlideinID]string // :: glidein that needs the site's relay → why the relay does not run

	Suspended string // why nothing new is requested for the site's owner; "": it may be

	index *index // of the first block; nil before the first Apply
}

// Installed holds what is known about a site's worker packages beyond the evidence of its jobs.
type Installed struct {
	Lost   bool                 // the site's own package has disappeared
	Newer  Package              // package that will replace the site's own; zero: none
	Missed map[string]time.Time // :: digest of a package → start time of a pilot that did not find it
}

// An Action is one thing to do at a site. The engine performs actions in order.
type Action interface {
	// Why returns the reason in one line, for the log.
	Why() string
}

type (
	// Submit requests a new job: its row is the recorded intent, then the site is called. The executor sets ID and
	// Tag.
	Submit struct {
		ID      corral.JobID // for Apply; the store numbers jobs itself
		Tag     string       // unique; the site identifies the job by it
		Kind    corral.JobKind
		Glidein corral.GlideinID // pilot jobs only
		Package string           // digest of the package that a setup job installs; empty: the site's own package
		Move    corral.SiteMove  // the site's move that belongs to the same intent, if any; not with a pilot job
		Reason  string
	}

	// Resume continues a job whose intent is recorded but whose submission was never answered: it is looked up by its
	// tag and submitted again only if the site does not know it.
	Resume struct{ Job corral.Job }

	// Renew replaces the token of a waiting attempt for its HTCondor pool.
	Renew struct{ Job corral.Job }

	// Drain tells a running attempt to finish its tasks and leave.
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

	// Retime sets when a glidein is wanted that follows another one, once that one runs.
	Retime struct {
		Glidein corral.GlideinID
		At      time.Time
		Reason  string
	}

	// Settle records a glidein's derived state where it differs from the recorded one.
	Settle struct {
		Glidein corral.GlideinID
		Lack    corral.Lack
	}

	// MoveSite moves the site.
	MoveSite struct {
		Move   corral.SiteMove
		Reason string
	}

	// UsePackage makes the site's next pilots use a package that was installed there, in place of the site's own.
	UsePackage struct{ Package Package }

	// Sweep removes the rest of the site's root directory, then moves the site to DELETED.
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

// maxSiteJobs is how often a setup or cleanup job is tried before the site fails.
const maxSiteJobs = 3

// siteJobBackoff is the time between two tries, doubled after each try.
const siteJobBackoff = 2 * time.Second

// Decide returns what to do about the site at now, in order.
func Decide(now time.Time, w World) []Action {
	var actions []Action
	turns := takeTurns(now, w)
	for _, g := range w.Glideins {
		actions = append(actions, glidein(now, w, g, turns)...)
	}
	return unlessSuspended(w, unlessExpired(now, w, slices.Concat(actions, turns.submits, site(now, w))))
}

// site decides about the site itself, by its state. Each state has one task: the setup job, the packages that
// glideins need, emptying the site, the cleanup job. In the last two states all jobs that remain there are cancelled.
func site(now time.Time, w World) []Action {
	switch w.Site.State {
	case corral.SiteNew:
		return []Action{Submit{Kind: corral.SetupJob, Move: corral.SiteStage, Reason: "the site is new"}}
	case corral.SiteStaging:
		return siteJob(now, w, corral.SetupJob, MoveSite{Move: corral.SiteStaged})
	case corral.SiteReady:
		if w.Installed.Lost && !slices.ContainsFunc(w.Jobs, corral.Job.Live) { // there is one setup job at a time
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

// siteJob follows the site's setup or cleanup job: success leads to next, failure to another try or to the failure of
// the site.
func siteJob(now time.Time, w World, kind corral.JobKind, next Action) []Action {
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
		return []Action{next} // refused, for example because a disk is full: sweeping needs no space, and frees some
	case retryable(last) && tries < maxSiteJobs:
		if now.Before(retryAt(now, tries, last)) {
			return nil
		}
		return []Action{Submit{Kind: kind, Reason: ended}}
	}
	return []Action{MoveSite{corral.SiteFail, ended}}
}

// retryAt returns when a setup or cleanup job may be followed by another, given that it was the last of that many
// tries.
func retryAt(now time.Time, tries int, last corral.Job) time.Time {
	at := last.EndedAt.Add(siteJobBackoff << (min(tries, maxSiteJobs) - 1))
	if at.Sub(now) > time.Minute { // back-offs are shorter than this: the clock was set back
		return now
	}
	return at
}

// lastOf returns the number of jobs of this kind since the last successful one, and the last one. Setup jobs of
// packages other than the site's own do not count.
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

// exiting passes the removal on to the glideins and the setup job; when no job is live the cleanup job follows,
// unless the site never reached a state in which a job could have run there.
func exiting(w World) []Action {
	const reason = "the site is being removed"
	actions := cancelAll(w.Jobs, reason)
	busy := len(actions) > 0
	for _, g := range w.Glideins {
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

// glidein decides about one glidein, except for its turn to submit another attempt.
func glidein(now time.Time, w World, g corral.Glidein, turns turns) []Action {
	var actions []Action
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
	if state, reason := g.Derive(w.Site.State, w.Held, lack, now); state != g.State || reason != g.Reason {
		actions = append(actions, Settle{g.ID, lack})
	}
	return actions
}

// attempt decides about one live attempt. Requests for the attempt and for its glidein count equally. A drain needs a
// pilot that can be told; one that waits or has no link to corrald is cancelled instead, because none of its work
// would be lost, or because there is no other way.
func attempt(now time.Time, w World, g corral.Glidein, a corral.Job) []Action {
	asked := func(ask corral.Ask) bool { return g.Asked == ask || a.Asked == ask }
	switch drain := asked(corral.AskDrain); {
	case w.Site.State == corral.SiteFailed, w.Site.State == corral.SiteDeleted:
		return []Action{Cancel{a, "the site is " + string(w.Site.State)}}
	case asked(corral.AskCancel):
		return []Action{Cancel{a, "asked to cancel"}}
	case drain && a.State == corral.JobRunning && a.LeaseHolder != "":
		return []Action{Drain{a}}
	case drain && a.Workers > 0: // its jobs return to the pool's queue
		return []Action{Cancel{a, "asked to drain, and its pilot has no link through which it could be told"}}
	case drain:
		return []Action{Cancel{a, "asked to drain before its pilot came"}}
	case a.State != corral.JobRunning:
		return waiting(now, w, g, a)
	}
	return nil
}

// wantsAttempt reports whether another attempt should be submitted as soon as there is room for it, and why.
func wantsAttempt(now time.Time, w World, g corral.Glidein, live []corral.Job) (bool, string) {
	switch {
	case w.Site.State != corral.SiteReady, now.Before(w.Held.Until):
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
