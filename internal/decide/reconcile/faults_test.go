package reconcile

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// Whatever fails at a site, on the connection to the site, in corrald or with its clock, all invariants hold after each
// step, and once the faults stop everything comes to rest. A failure names the violated invariant, and rapid reports
// the shortest list of steps that it finds.
func TestInvariantsHoldUnderFaults(t *testing.T) {
	t.Parallel()
	var steps atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		f := newFaulty(t)
		t.Repeat(f.actions(&steps))
		f.comeToRest()
		f.check(t)
	})
	t.Logf("%d steps", steps.Load())
}

func newFaulty(t *rapid.T) *faulty {
	f := &faulty{T: t, wrong: map[string]string{}}
	f.anew(corral.SiteLimits{
		MaxQueued:  rapid.IntRange(0, 3).Draw(t, "max queued"),
		MaxRunning: rapid.IntRange(0, 4).Draw(t, "max running"),
	}, rapid.Bool().Draw(t, "linked"))
	return f
}

// anew replaces the world with a world that contains another site, which has one glidein.
func (f *faulty) anew(limits corral.SiteLimits, linked bool) {
	f.rig = newRig(f.T, corral.Site{Limits: limits})
	f.site = &faultySite{clock: t0, linked: linked, leased: map[string]int{}}
	f.missing, f.fates, f.asked = Missing{}, map[corral.GlideinID]*fate{}, nil
	f.faults, f.forced = true, false
	if rapid.Bool().Draw(f.T, "ready") {
		f.Site.PackageDigest, f.site.installed = digest, true
		f.must(MoveSite{Move: corral.SiteStage})
		f.must(MoveSite{Move: corral.SiteStaged})
	}
	f.create(forever())
}

// actions returns the possible events, each with a name that describes the event when a failure is shown.
func (f *faulty) actions(steps *atomic.Int64) map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"time passes":           f.timePasses,
		"the queue moves":       f.queueMoves,
		"the queue moves on":    f.queueMoves,
		"a job ends":            f.jobEnds,
		"a job vanishes":        f.jobVanishes,
		"a user asks":           f.userAsks,
		"another site":          f.anotherSite,
		"corrald starts again":  func(*rapid.T) { f.crash() },
		"the clock jumps":       f.clockJumps,
		"the site is silent":    f.siteIsSilent,
		"the package is lost":   f.packageIsLost,
		"corrald does its part": func(*rapid.T) { f.step() },
		"corrald goes on":       func(*rapid.T) { f.step() },
	}
	for name, action := range actions {
		actions[name] = func(t *rapid.T) { action(t); steps.Add(1) }
	}
	actions[""] = f.check
	return actions
}

func (f *faulty) timePasses(t *rapid.T) {
	f.pass(time.Duration(rapid.SampledFrom([]int{1, 1, 2, 5, 5, 6, 30, 600, 3600, 90000}).Draw(t, "seconds")) * time.Second)
	f.mayStep(t)
}

// mayStep lets corrald take a step, or not, because many events may occur at a site between two of corrald's steps.
func (f *faulty) mayStep(t *rapid.T) {
	if rapid.Bool().Draw(t, "and corrald looks") {
		f.step()
	}
}

// pass advances all clocks.
func (f *faulty) pass(d time.Duration) {
	f.now = f.now.Add(d)
	f.site.pass(d)
}

// queueMoves starts one of the waiting jobs, or all of them. The site's own jobs may end at once.
func (f *faulty) queueMoves(t *rapid.T) {
	waiting := f.site.live(func(j *theirJob) bool { return j.started.IsZero() })
	if len(waiting) > 1 && !rapid.Bool().Draw(t, "all start") {
		waiting = []*theirJob{rapid.SampledFrom(waiting).Draw(t, "starts")}
	}
	for _, j := range waiting {
		f.start(j)
		if j.of.Kind != corral.PilotJob && rapid.Bool().Draw(t, "is done at once") {
			f.site.end(j, "", &Report{Outcome: corral.OutcomeDone})
		}
	}
	f.mayStep(t)
}

func (f *faulty) jobEnds(t *rapid.T) {
	if running := f.site.live(func(j *theirJob) bool { return !j.started.IsZero() }); len(running) > 0 {
		j := rapid.SampledFrom(running).Draw(t, "ends")
		killed, report := someEnd(t, j.of.Kind)
		f.site.end(j, killed, report)
	}
	f.mayStep(t)
}

// jobVanishes makes the batch system lose a job and all data about the job.
func (f *faulty) jobVanishes(t *rapid.T) {
	if len(f.site.jobs) > 0 {
		j := rapid.SampledFrom(f.site.jobs).Draw(t, "vanishes")
		j.vanished = true
		if j.live() {
			f.site.end(j, ByDisappeared, nil)
		}
	}
}

// clockJumps sets only corrald's clock. Times that are measured in memory are not affected, because they use a clock
// that is never set.
func (f *faulty) clockJumps(t *rapid.T) {
	d := time.Duration(rapid.SampledFrom([]int{-172800, -3600, -10, -1, 1, 10, 3600, 172800}).Draw(t, "by seconds")) * time.Second
	f.now, f.asked = f.now.Add(d), nil
	for tag, since := range f.missing {
		f.missing[tag] = since.Add(d)
	}
}

// siteIsSilent makes the site silent, or ends the silence if the site is already silent.
func (f *faulty) siteIsSilent(t *rapid.T) {
	if f.site.clock.Before(f.site.silent) {
		f.site.silent = f.site.clock
		return
	}
	f.site.silent = f.site.clock.Add(time.Duration(rapid.SampledFrom([]int{3, 10, 10, 60, 7200}).Draw(t, "for seconds")) * time.Second)
}

func (f *faulty) packageIsLost(*rapid.T) { f.Installed.Lost = f.Site.State == corral.SiteReady }

// anotherSite replaces a site that has ended, once that site has proved to be at rest.
func (f *faulty) anotherSite(*rapid.T) {
	if f.Site.State.Terminal() {
		f.comeToRest()
		f.anew(f.Site.Limits, f.site.linked)
	}
}

// userAsks makes a user send a request.
func (f *faulty) userAsks(t *rapid.T) {
	switch what := rapid.SampledFrom([]string{"more", "more", "more", "drain", "cancel", "of the site"}).Draw(t, "what"); what {
	case "more":
		g := forever()
		g.Resubmit = rapid.SampledFrom([]resubmit.Policy{g.Resubmit, {}, {Retries: 2}, {Mode: resubmit.Times, Limit: 2, Retries: 1}}).Draw(t, "policy")
		g.Overlap = corral.Seconds(rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Minute}).Draw(t, "overlap"))
		if len(f.Glideins) > 0 && rapid.IntRange(0, 2).Draw(t, "follows one") == 0 {
			g.Follows = rapid.SampledFrom(f.Glideins).Draw(t, "which").ID
			g.NotBefore = f.now.Add(time.Hour)
			g.FollowsAfter = corral.Seconds(rapid.SampledFrom([]time.Duration{0, 20 * time.Minute, 2 * time.Hour}).Draw(t, "after"))
		}
		f.create(g)
	case "drain", "cancel":
		if len(f.Glideins) > 0 {
			g := rapid.SampledFrom(f.Glideins).Draw(t, "whose")
			f.request(AskGlidein{g.ID, corral.Ask(what), "a user asks"})
		}
	case "of the site":
		switch rapid.IntRange(0, 5).Draw(t, "removal, or by force") {
		case 1, 2:
			f.request(MoveSite{Move: corral.SiteRemove})
		case 3:
			f.forced = f.request(MoveSite{Move: corral.SiteForget}) || f.forced
		}
	}
}

// create requests a glidein, unless the site already has more than enough glideins.
func (f *faulty) create(g corral.Glidein) {
	if len(f.Glideins) < 8 && f.request(CreateGlidein{Glidein: g}) {
		f.fates[f.lastGlidein] = &fate{}
	}
}

// request makes a change, which is refused if it makes no sense.
func (f *faulty) request(c Change) bool {
	entries, err := f.apply(c)
	f.heard(entries)
	return err == nil
}

// comeToRest stops all faults: requests are carried out, waiting jobs start, and running jobs continue. Then only few
// actions occur whenever something is due, and none after that.
func (f *faulty) comeToRest() {
	f.faults, f.site.silent = false, time.Time{}
	for i := range f.site.flown {
		f.site.flown[i].arrive = f.site.clock
	}
	const most = 2000
	quiet := 0
	for range most {
		for _, j := range f.site.live(nil) {
			j.walltime, j.deaf = 10_000*time.Hour, false
			switch {
			case j.started.IsZero():
				f.start(j)
			case j.of.Kind != corral.PilotJob:
				f.site.end(j, "", &Report{Outcome: corral.OutcomeDone})
			}
		}
		quiet++
		if f.step() > 0 {
			quiet = 0
		}
		wait := time.Second
		if due := Due(f.now, f.World); quiet > int(Visibility/time.Second)+1 {
			if due.IsZero() {
				f.checkRest()
				return
			}
			wait, quiet = due.Sub(f.now), 0
		}
		f.pass(wait)
	}
	f.breaks(comesToRest, fmt.Sprintf("still %q after %d steps, site %s", kinds(Decide(f.now, f.World)), most, f.Site.State))
}
