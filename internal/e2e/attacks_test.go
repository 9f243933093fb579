package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// What corrald does by itself for one owner never reaches what another has: scales, plans and their revisions,
// ensembles, resubmission and the removal of sites go on after the request that began them, and no handler looks at
// them again. In each of these a site of ann's goes away while something of hers still names it, and bea has one of the
// same name, which takes pilots. Nothing of ann's may appear there. It is enough if no loop can be misled: a removal
// may be refused as long as something needs the site.
//
// Ann's sites are on corrald's host here, by a token with the grant local that she does not use afterwards; what
// matters is their names.
func TestEachLoopActsForItsOwner(t *testing.T) {
	t.Parallel()
	c := newCentral(t, nil, "CORRALD_MACHINE_CPUS=64")
	t.Cleanup(func() { storetest.CheckOwners(t, c.database()) }) // after all of them
	for name, attack := range map[string]func(*duel){
		"scale":              (*duel).scale,
		"scale goes on":      (*duel).scaleBesideAnother,
		"revision":           (*duel).revision,
		"revision anywhere":  (*duel).revisionAnywhere,
		"ensemble":           (*duel).ensemble,
		"resubmission":       (*duel).resubmission,
		"administrator":      (*duel).administrator,
		"plan of what went":  (*duel).planOfWhatWent,
		"scale over a renew": (*duel).scaleOverARenewal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tag := strings.ReplaceAll(name, " ", "")
			d := &duel{c: c, site: "hpc-" + tag, ann: c.person(t, "ann"+tag), bea: c.person(t, "bea"+tag, "--grant", "local"),
				annOnHost: c.person(t, "ann"+tag, "--grant", "local")}
			d.bea.readySite(d.site)
			d.bea.must("cluster", "create", "default", "--kind", "embedded", "-q")
			d.ann.must("cluster", "create", "default", "--kind", "embedded", "-q")
			d.annOnHost.readySite(d.site)
			attack(d)
			d.untouched()
		})
	}
}

// A duel is one owner beside another who has a site and a cluster of the same names.
type duel struct {
	c              *central
	site           string // the name that both give their sites, and no other owner does
	ann, annOnHost *user
	bea            *user
}

// untouched fails the test for a glidein of ann's that is not at one of ann's sites.
func (d *duel) untouched() {
	d.ann.t.Helper()
	for _, g := range d.abroad() {
		d.ann.t.Errorf("glidein %d of ann's is at somebody else's site, %s with the id %d", g.ID, g.SiteName, g.Site)
	}
}

// abroad lists ann's glideins at sites that are not hers.
func (d *duel) abroad() []corral.Glidein {
	d.ann.t.Helper()
	glideins := read[[]corral.Glidein](d.ann, "glidein", "list", "--all")
	hers := map[corral.SiteID]bool{} // read later: a site is there before its glideins
	for _, s := range read[[]corral.Site](d.ann, "site", "list", "--all") {
		hers[s.ID] = true
	}
	return slices.DeleteFunc(glideins, func(g corral.Glidein) bool { return hers[g.Site] })
}

// leave removes ann's site, and reports whether it is gone: it may be refused while something needs it.
func (d *duel) leave() bool {
	d.ann.t.Helper()
	a := d.annOnHost.corral("site", "remove", d.site, "--wait", "--timeout", "5m", "-q")
	if a.code != 0 && a.code != 1 && a.code != 5 {
		d.ann.t.Errorf("the removal of the site: exit code %d: %s", a.code, a.stderr)
	}
	return a.code == 0
}

// until waits until ok, or until a glidein of ann's is at bea's site, which untouched tells of, or until corrald takes
// the sites of the two for one.
func (d *duel) until(what string, ok func() bool) {
	d.ann.t.Helper()
	d.ann.until(what, time.Minute, func() bool {
		if d.c.logged("owners have a site " + d.site) {
			d.ann.t.Errorf("waiting until %s: corrald takes sites of several owners called %s for one", what, d.site)
			return true
		}
		return len(d.abroad()) > 0 || ok()
	})
}

// report is what the scale of ann's cluster said last.
func (d *duel) report() string {
	d.ann.t.Helper()
	return read[corral.Scale](d.ann, "cluster", "scale", "default").Report
}

const scaled = "--walltime=10m"

// A task waits in the queue, and the scale's site is gone.
func (d *duel) scale() {
	d.ann.must("cluster", "scale", "default", "--site", d.site, "--max", "2", scaled)
	if !d.leave() {
		return
	}
	d.ann.must("submit", "-q", "--", "true")
	d.until("the scale says that its site is gone", func() bool { return strings.Contains(d.report(), "gone") })
}

// A site of somebody else's with the name of one's own changes nothing: the task is done, by a pilot at the own one.
func (d *duel) scaleBesideAnother() {
	d.ann.must("cluster", "scale", "default", "--site", d.site, "--max", "1", scaled)
	run := d.ann.must("submit", "-q", "--", "true")
	d.until("the task is done", func() bool { return d.ann.run(run).State == corral.RunSucceeded })
	if got := d.report(); strings.Contains(got, "owners") {
		d.ann.t.Errorf("ann is told of others: %s", got)
	}
	d.ann.must("cluster", "scale", "default", "--off")
}

// A scale whose site was removed, and made anew under its name, uses the new one or none.
func (d *duel) scaleOverARenewal() {
	d.ann.must("cluster", "scale", "default", "--site", d.site, "--max", "2", scaled)
	if !d.leave() {
		return
	}
	d.ann.must("submit", "-q", "--", "true")
	d.annOnHost.must("site", "create", d.site, "--contact", "local:", "--batch", "fork", "--root", d.ann.dir+"/root/again", "--wait", "-q")
	d.until("the scale has looked", func() bool {
		return strings.Contains(d.report(), "gone") || len(read[[]corral.Glidein](d.ann, "glidein", "list", "--all")) > 0
	})
	d.ann.must("cluster", "scale", "default", "--off")
}

// gated is a workflow whose tasks end when the file go is there.
func (d *duel) gated(n int) string {
	return d.ann.workflow("gated", d.ann.behind("go", 1, steps(n, 10*time.Millisecond))...)
}

// A run with a plan that is revised, whose site is gone: it stalls, as nothing may be asked for elsewhere.
func (d *duel) revision() { d.revise("--site", d.site) }

// The same of a plan that may use any site of its owner's.
func (d *duel) revisionAnywhere() {
	d.bea.readySite("elsewhere")
	d.revise()
}

func (d *duel) revise(flags ...string) {
	run := d.ann.must(append([]string{"run", d.gated(4), "--auto", "--detach", "-q", "--stall", "20s", "--deadline", "10m"}, flags...)...)
	d.ann.until("a task runs", time.Minute, func() bool { return d.ann.run(run).Tasks.Running > 0 })
	for _, g := range read[[]corral.Glidein](d.ann, "glidein", "list") {
		d.ann.must("glidein", "remove", id(g.ID), "--now", "-q")
	}
	if !d.leave() {
		d.ann.must("runs", "cancel", run, "--wait")
		return
	}
	d.until("the run stalls", func() bool { return d.ann.run(run).State.Over() })
	d.ann.let("go")
}

// An ensemble ends when its site does.
func (d *duel) ensemble() {
	d.ann.must("ensemble", "run", d.gated(2), "--site", d.site, "--budget", "1ch", "--deadline", "10m", "--detach", "-q")
	newest := func() record.Ensemble { return read[[]record.Ensemble](d.ann, "ensemble", "list")[0] }
	d.ann.until("it has a pilot", time.Minute, func() bool { return len(read[[]corral.Glidein](d.ann, "glidein", "list")) > 0 })
	if d.leave() {
		d.until("the ensemble ends", func() bool { return newest().State == record.Ended })
	} else {
		d.ann.must("ensemble", "cancel", id(newest().ID), "-q")
	}
	d.ann.let("go")
}

// A glidein that is asked for again and again ends with its site.
func (d *duel) resubmission() {
	g := d.ann.must("glidein", "create", "--site", d.site, "--resubmit", "forever", "--wait", "-q")
	if d.leave() {
		d.until("the glidein ends", func() bool { return d.ann.glidein(g).State.Terminal() })
		return
	}
	d.ann.must("glidein", "remove", g, "--now", "-q")
}

// An administrator may have a user's plan carried out. Its pilots are asked for where the user planned them, whatever
// the administrator and others have of that name.
func (d *duel) administrator() {
	root := d.c.person(d.ann.t, "root", "--administrator")
	root.readySite(d.site)
	plan := d.ann.must("plan", d.gated(2), "--site", d.site, "--deadline", "10m", "-q")
	if a := root.corral("plan", "apply", plan, "-q"); a.code != 0 && a.code != 5 {
		d.ann.t.Errorf("an administrator has a plan of ann's carried out: exit code %d: %s", a.code, a.stderr)
	}
	d.ann.let("go")
	d.ann.corral("plan", "release", plan)
}

// A plan that was made for a site that is gone cannot be begun.
func (d *duel) planOfWhatWent() {
	plan := d.ann.must("plan", d.gated(2), "--site", d.site, "--deadline", "10m", "-q")
	if !d.leave() {
		return
	}
	for _, who := range []*user{d.ann, d.c.person(d.ann.t, "root", "--administrator")} {
		if a := who.corral("plan", "apply", plan, "-q"); a.code == 0 {
			d.ann.t.Errorf("a plan is begun whose site is gone: %s", a.stdout)
		} else if strings.Contains(a.stderr, "owners") {
			d.ann.t.Errorf("it is told of others: %s", a.stderr)
		}
	}
}

func id[ID ~int64](number ID) string { return strconv.FormatInt(int64(number), 10) }
