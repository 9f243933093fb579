package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/resubmit"
)

// A Need lists what the glideins of one HTCondor cluster need before an attempt can be submitted: the pool, and the
// pool's worker package at the site, in addition to the site's own package.
type Need struct {
	Cluster corral.Cluster
	Package string // full name of the worker package; empty if no package fits, or if the pool's version is unknown
	Version string // version of HTCondor in the package
	Digest  string
	Unfit   string // why no package fits, and what to do about it
}

// lack returns the reason why another attempt of g cannot be submitted to a ready site. The site's own setup job
// concerns the site; a setup job for a cluster's package concerns the glidein, and its failure does not affect others.
func (w *World) lack(g *corral.Glidein) corral.Lack {
	if w.Installed.Lost && w.Site.State == corral.SiteReady {
		return corral.Lack{Why: "site " + w.Site.Name + " has lost its package, which is staged again first"}
	}
	if lack := lacksUpgrade(w); lack != (corral.Lack{}) {
		return lack
	}
	if why, ok := mustWait(w, g); ok {
		return corral.Lack{Why: why}
	}
	if why := w.NoRelay[g.ID]; why != "" && w.Site.State == corral.SiteReady {
		return corral.Lack{Why: why}
	}
	return w.lacksOfCluster(g)
}

// keeps returns the reason why another attempt of g is not submitted: a lack, a suspended owner, or a credential that
// has expired or would expire before the attempt ends. The latter two reasons neither use up a retry nor cause a
// failure; an administrator or a new credential can remove them.
func keeps(now time.Time, w *World, g *corral.Glidein) corral.Lack {
	lack := w.lack(g)
	if lack.Final || w.Site.State != corral.SiteReady {
		return lack
	}
	if w.Suspended != "" {
		return corral.Lack{Why: w.Suspended}
	}
	if why := credential.Refuses(now, w.Site.Credentials, time.Duration(g.Walltime)); why != "" {
		return corral.Lack{Why: "site " + w.Site.Name + ": " + why}
	}
	return lack
}

// unlessExpired omits submissions with an expired credential, including jobs of the site. Submissions that were never
// answered are not repeated then either; if the site has the job, the next poll shows it.
func unlessExpired(now time.Time, w *World, actions []Action) []Action {
	if credential.Refuses(now, w.Site.Credentials, 0) == "" {
		return actions
	}
	return slices.DeleteFunc(actions, func(a Action) bool {
		switch a.(type) {
		case Submit, Resume:
			return true
		}
		return false
	})
}

// unlessSuspended omits setup jobs at a site whose owner is suspended. Cleanup jobs are still submitted, because they
// only remove files.
func unlessSuspended(w *World, actions []Action) []Action {
	if w.Suspended == "" {
		return actions
	}
	return slices.DeleteFunc(actions, func(a Action) bool {
		submit, ok := a.(Submit)
		return ok && submit.Kind != corral.CleanupJob
	})
}

// credentialTimes passes on the times when credentials begin or cease to permit submissions of the glideins' attempts.
func credentialTimes(w *World, consider func(time.Time)) {
	if len(w.Site.Credentials) == 0 {
		return
	}
	turns := func(walltime time.Duration) {
		for _, at := range credential.Turns(w.Site.Credentials, walltime) {
			consider(at)
		}
	}
	turns(0)
	for i := range w.Glideins {
		g := &w.Glideins[i]
		if !g.State.Terminal() {
			turns(time.Duration(g.Walltime))
		}
	}
}

// lacksOfCluster returns the reason related to g's cluster why another attempt of g must wait: the pool is not running,
// no worker package fits the pool, or the package is not installed at the site yet. The first two reasons end only with
// a change of the cluster; in the last case a setup job stages the package (staging), and the lack is final once all
// tries have failed.
func (w *World) lacksOfCluster(g *corral.Glidein) corral.Lack {
	n, ok := w.Needs[g.Cluster]
	switch {
	case !ok || w.Site.State != corral.SiteReady:
		return corral.Lack{}
	case n.Cluster.State != corral.ClusterReady:
		why := fmt.Sprintf("cluster %s is %s", n.Cluster.Name, n.Cluster.State)
		if n.Cluster.Reason != "" {
			why += ": " + n.Cluster.Reason
		}
		return corral.Lack{Why: why}
	case n.Unfit != "":
		return corral.Lack{Why: n.Unfit, Final: true}
	case n.Digest == "":
		return corral.Lack{Why: fmt.Sprintf("the version of HTCondor in cluster %s is not known yet", n.Cluster.Name)}
	}
	tries, done := w.stagings(g, n.Digest)
	switch {
	case done:
		return corral.Lack{}
	case exhausted(tries):
		why := fmt.Sprintf("package %s could not be staged: %s", n.Package, reasons(tries))
		return corral.Lack{Why: why, Final: true}
	}
	why := "package " + n.Package + " is being staged"
	if n := len(tries); n > 0 && tries[n-1].State == corral.JobQueued && tries[n-1].Reason != "" {
		why += "; its setup job waits: " + tries[n-1].Reason
	}
	return corral.Lack{Why: why}
}

// stagings reports whether a package was installed at the site and no pilot has failed to find it since. If not, it
// returns the setup jobs for the package that count for g; earlier jobs do not count, because a package whose setup
// failed before the glidein was requested may work by now.
func (w *World) stagings(g *corral.Glidein, digest string) (tries []corral.Job, done bool) {
	for _, j := range w.Jobs {
		switch {
		case j.Kind != corral.SetupJob || j.Package != digest:
		case j.Outcome == corral.OutcomeDone && j.EndedAt.After(w.Installed.Missed[digest]):
			return nil, true
		case j.Outcome == corral.OutcomeDone:
			tries = nil // the site has lost the package since
		case j.Live() || !j.CreatedAt.Before(g.CreatedAt):
			tries = append(tries, j)
		}
	}
	return tries, false
}

// exhausted reports whether no further try follows these tries.
func exhausted(tries []corral.Job) bool {
	if len(tries) == 0 {
		return false
	}
	last := tries[len(tries)-1]
	return !last.Live() && (!retryable(last) || len(tries) >= maxSiteJobs)
}

// reasons returns the distinct reasons why setup jobs failed.
func reasons(tries []corral.Job) string {
	var all []string
	for _, j := range tries {
		reason := fmt.Sprintf("%s: %s", j.Outcome, j.Reason)
		if !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	return strings.Join(all, "; ")
}

// wantsPackage reports whether g may soon need its package. A package is not staged for a glidein whose live attempts
// no longer need it, because the glidein may never request another attempt.
func wantsPackage(now time.Time, g *corral.Glidein) bool {
	if g.Asked != corral.AskNothing || g.State.Terminal() {
		return false
	}
	live := g.Live()
	if len(live) == 0 {
		verdict, _, _ := g.Next(now)
		return verdict == resubmit.Again
	}
	return g.Overlap > 0 || slices.ContainsFunc(live, func(a corral.Job) bool { return a.State == corral.JobNew })
}

// staging installs the packages that glideins need at a ready site, one package at a time.
func staging(now time.Time, w *World) []Action {
	for _, j := range w.Jobs {
		switch {
		case j.Kind != corral.SetupJob || !j.Live():
		case j.State == corral.JobNew:
			return []Action{Resume{j}}
		default:
			return serving(now, w, j)
		}
	}
	if actions := upgrade(now, w); len(actions) > 0 {
		return actions
	}
	for i := range w.Glideins {
		g := &w.Glideins[i]
		n, lack := w.Needs[g.Cluster], w.lacksOfCluster(g)
		if lack.Why == "" || lack.Final || n.Digest == "" || n.Cluster.State != corral.ClusterReady ||
			!wantsPackage(now, g) {
			continue
		}
		tries, _ := w.stagings(g, n.Digest)
		if len(tries) == 0 || !now.Before(retryAt(now, len(tries), tries[len(tries)-1])) {
			why := fmt.Sprintf("glidein %d needs package %s", g.ID, n.Package)
			return []Action{Submit{Kind: corral.SetupJob, Package: n.Digest, Reason: why}}
		}
	}
	return nil
}

// stagingTimes passes on the times when setup jobs for packages may be retried.
func stagingTimes(now time.Time, w *World, consider func(time.Time)) {
	consider(upgradeTime(now, w))
	for i := range w.Glideins {
		g := &w.Glideins[i]
		if n := w.Needs[g.Cluster]; n.Digest != "" && !g.State.Terminal() {
			if tries, _ := w.stagings(g, n.Digest); len(tries) > 0 {
				consider(retryAt(now, len(tries), tries[len(tries)-1]))
			}
		}
	}
}
