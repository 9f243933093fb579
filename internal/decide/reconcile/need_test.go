package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// digest and name identify the package that glideins of cluster 3 need.
const (
	digest = "sha256:1"
	name   = "htcondor-23.9.6-x86_64-linux-static"
)

func ready() Need {
	return Need{Cluster: corral.Cluster{ID: 3, Name: "mine", Kind: corral.Condor, State: corral.ClusterReady, Version: "23.9.6"}, Package: name, Digest: digest}
}

// condorGlidein returns a glidein of cluster 3, requested at t0.
func condorGlidein(policy resubmit.Policy, attempts ...corral.Job) corral.Glidein {
	g := glideinWith(policy, attempts...)
	g.Cluster, g.CreatedAt = 3, t0
	return g
}

// staged returns a setup job for a package, which ended at t0.
func staged(of string, o corral.Outcome, transient bool) corral.Job {
	j := siteJobOver(corral.SetupJob, 1, o, transient)
	j.Package, j.CreatedAt, j.Reason = of, t0, "its reason"
	return j
}

func stagingNow(of string, s corral.JobState) corral.Job {
	return corral.Job{Kind: corral.SetupJob, Package: of, State: s, CreatedAt: t0}
}

func TestDecideNeed(t *testing.T) {
	t.Parallel()
	never := resubmit.Policy{Mode: resubmit.Never}
	down, unfit, unknown := ready(), ready(), ready()
	down.Cluster.State, down.Cluster.Reason = corral.ClusterStopped, "as asked"
	unfit.Package, unfit.Digest, unfit.Unfit = "", "", "no package fits: build one"
	unknown.Package, unknown.Digest = "", ""
	own := siteJobOver(corral.SetupJob, 1, corral.OutcomeDone, false)
	failed := staged(digest, corral.OutcomeFailed, true)
	lost := staged(digest, corral.OutcomeLost, false)
	before := failed
	before.CreatedAt = t0.Add(-time.Minute)
	asked := func(g corral.Glidein) corral.Glidein { g.Asked = corral.AskDrain; return g }
	lap := func(g corral.Glidein) corral.Glidein { g.Overlap = corral.Seconds(20 * time.Second); return g }
	first := condorGlidein(never)
	var embedded = glideinWith(never)
	embedded.Cluster = 1
	tests := []struct {
		name  string
		need  Need
		jobs  []corral.Job
		g     corral.Glidein
		after time.Duration
		want  []string
		says  string // the glidein's reason
	}{
		{"not there: it is staged, the glidein waits", ready(), []corral.Job{own}, first, 0, []string{"settle", "stage " + digest}, "package " + name + " is being staged"},
		{"being staged", ready(), []corral.Job{own, stagingNow(digest, corral.JobRunning)}, first, 0, []string{"settle"}, "is being staged"},
		{"being staged, unanswered", ready(), []corral.Job{own, stagingNow(digest, corral.JobNew)}, first, 0, []string{"settle", "resume"}, "is being staged"},
		{"another is being staged: one at a time", ready(), []corral.Job{own, stagingNow("sha256:2", corral.JobRunning)}, first, 0, []string{"settle"}, "is being staged"},
		{"another was staged", ready(), []corral.Job{own, staged("sha256:2", corral.OutcomeDone, false)}, first, 0, []string{"settle", "stage " + digest}, ""},
		{"there", ready(), []corral.Job{own, staged(digest, corral.OutcomeDone, false)}, first, 0, []string{"submit pilot"}, ""},
		{"there, staged once more in vain", ready(), []corral.Job{staged(digest, corral.OutcomeDone, false), failed}, first, 0, []string{"submit pilot"}, ""},
		{"failed, may pass: too early", ready(), []corral.Job{failed}, first, 0, []string{"settle"}, "is being staged"},
		{"failed, may pass: later", ready(), []corral.Job{failed}, first, time.Minute, []string{"settle", "stage " + digest}, "is being staged"},
		{"failed for good", ready(), []corral.Job{staged(digest, corral.OutcomeFailed, false)}, first, time.Minute, []string{"settle"}, "FAILED package " + name + " could not be staged: failed: its reason"},
		{"failed three times", ready(), []corral.Job{failed, lost, failed}, first, time.Minute, []string{"settle"}, "FAILED package " + name + " could not be staged: failed: its reason; lost: its reason"},
		{"failed three times before it was asked for", ready(), []corral.Job{before, before, before}, first, 0, []string{"settle", "stage " + digest}, "is being staged"},
		{"failed, nothing follows", ready(), nil, condorGlidein(never, over(1, corral.OutcomeIdle)), 0, []string{}, "FINISHED"},
		{"no package fits", unfit, nil, first, 0, []string{"settle"}, "FAILED no package fits: build one"},
		{"no package fits, others still run", unfit, nil, condorGlidein(never, alive(1, corral.JobRunning)), 0, []string{}, "ACTIVE"},
		{"the pool is stopped", down, []corral.Job{staged(digest, corral.OutcomeDone, false)}, first, 0, []string{"settle"}, "WAITING cluster mine is STOPPED: as asked"},
		{"the pool is stopped: nothing is staged", down, nil, first, 0, []string{"settle"}, "WAITING cluster mine is STOPPED"},
		{"the pool's version is not known", unknown, nil, first, 0, []string{"settle"}, "WAITING the version of HTCondor in cluster mine is not known yet"},
		{"asked to go", ready(), nil, asked(first), 0, []string{"settle"}, "DELETED"},
		{"one runs, none follows", ready(), nil, condorGlidein(never, alive(1, corral.JobRunning)), 0, []string{}, ""},
		{"one runs, with overlap", ready(), nil, lap(condorGlidein(resubmit.Policy{Mode: resubmit.Forever}, alive(1, corral.JobRunning))), 45 * time.Second, []string{"stage " + digest}, "ACTIVE"},
		{"submission unanswered, and the package is gone", ready(), nil, condorGlidein(never, alive(1, corral.JobNew)), 0, []string{"stage " + digest}, "ACTIVE"},
		{"submission unanswered, and the pool is stopped", down, nil, condorGlidein(never, alive(1, corral.JobNew)), 0, []string{}, "ACTIVE"},
		{"submission unanswered, and no package fits", unfit, nil, condorGlidein(never, alive(1, corral.JobNew)), 0, []string{"resume"}, "ACTIVE"},
		{"of an embedded cluster", ready(), nil, embedded, 0, []string{"submit pilot"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := t0.Add(tt.after)
			w := World{Site: corral.Site{State: corral.SiteReady}, Jobs: tt.jobs, Glideins: []corral.Glidein{tt.g}, Needs: map[corral.ClusterID]Need{3: tt.need}}
			if diff := cmp.Diff(tt.want, kinds(Decide(now, w))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			state, reason := tt.g.Derive(w.Site.State, w.Held, w.lack(&tt.g), now)
			if said := string(state) + " " + reason; !strings.Contains(said, tt.says) {
				t.Errorf("the glidein is %q, want %q", said, tt.says)
			}
			w.Glideins[0].State, w.Glideins[0].Reason = state, reason
			for _, a := range Decide(now, w) {
				if _, again := a.(Settle); again {
					t.Errorf("what is settled is settled again")
				}
			}
		})
	}
}

// While a glidein waits for its site's relay, its package is staged, once.
func TestDecideNoRelay(t *testing.T) {
	t.Parallel()
	g := condorGlidein(resubmit.Policy{Mode: resubmit.Never})
	for want, jobs := range map[string][]corral.Job{"settle": {staged(digest, corral.OutcomeDone, false)}, "settle stage " + digest: nil} {
		w := World{Site: corral.Site{State: corral.SiteReady}, Jobs: jobs, Glideins: []corral.Glidein{g}, Needs: map[corral.ClusterID]Need{3: ready()}}
		w.NoRelay = map[corral.GlideinID]string{g.ID: "the site's relay does not run"}
		if got := strings.Join(kinds(Decide(t0, w)), " "); got != want {
			t.Errorf("with setup jobs %v: %s, want %s", jobs, got, want)
		}
	}
}

// While its owner is suspended, a site receives neither pilots nor setup jobs, and the reason is shown; running jobs
// continue, and removals are carried out.
func TestDecideSuspended(t *testing.T) {
	t.Parallel()
	const why = "the account ann is suspended"
	forever := resubmit.Policy{Mode: resubmit.Forever}
	waits, runs := glideinWith(forever), glideinWith(forever, corral.Job{ID: 1, Kind: corral.PilotJob, Glidein: 7, Number: 1, State: corral.JobRunning, StartedAt: t0})
	for _, tt := range []struct {
		site     corral.Site
		glideins []corral.Glidein
		active   string
		want     string
	}{
		{corral.Site{State: corral.SiteReady}, []corral.Glidein{waits}, "submit pilot", "settle"},
		{corral.Site{State: corral.SiteReady}, []corral.Glidein{runs}, "", ""},
		{corral.Site{State: corral.SiteNew}, nil, "submit setup", ""},
		{corral.Site{State: corral.SiteExiting, PackageDigest: digest}, nil, "submit cleanup", "submit cleanup"},
	} {
		w := World{Site: tt.site, Glideins: tt.glideins}
		if got := strings.Join(kinds(Decide(t0, w)), " "); got != tt.active {
			t.Errorf("site %s: %q, want %q", tt.site.State, got, tt.active)
		}
		w.Suspended = why
		actions := Decide(t0, w)
		if got := strings.Join(kinds(actions), " "); got != tt.want {
			t.Errorf("site %s, suspended: %q, want %q", tt.site.State, got, tt.want)
		}
		if len(actions) == 1 && tt.want == "settle" && actions[0].(Settle).Lack.Why != why {
			t.Errorf("it waits for %+v", actions[0])
		}
	}
}

// Setup jobs for packages of glideins are separate from the site's: the site neither becomes READY nor fails because
// of them.
func TestPackagesOfGlideinsAreNotTheSites(t *testing.T) {
	t.Parallel()
	w := World{Site: corral.Site{State: corral.SiteStaging, PackageDigest: "sha256:…"}, Jobs: []corral.Job{staged(digest, corral.OutcomeDone, false), staged(digest, corral.OutcomeFailed, false)}}
	if diff := cmp.Diff([]string{"submit setup"}, kinds(Decide(t0, w))); diff != "" {
		t.Errorf("Decide (-want +got):\n%s", diff)
	}
	w.Site.State, w.Jobs = corral.SiteExiting, []corral.Job{stagingNow(digest, corral.JobRunning)}
	if diff := cmp.Diff([]string{"cancel"}, kinds(Decide(t0, w))); diff != "" {
		t.Errorf("of a site that is removed (-want +got):\n%s", diff)
	}
}

// A site that has lost its own package is set up again, whatever times the clocks of the site and of corrald show for
// the earlier setup.
func TestDecideLost(t *testing.T) {
	t.Parallel()
	done := corral.Job{Kind: corral.SetupJob, State: corral.JobEnded, Outcome: corral.OutcomeDone, CreatedAt: t0, EndedAt: t0.Add(time.Hour)}
	w := World{Site: corral.Site{State: corral.SiteReady}, Jobs: []corral.Job{done}, Installed: Installed{Lost: true}}
	got := Decide(t0.Add(time.Minute), w)
	if len(got) != 1 || got[0] != (Submit{Kind: corral.SetupJob, Move: corral.SiteStage, Reason: "the site has lost its package"}) {
		t.Errorf("decided %+v", got)
	}
	w.Installed.Lost = false
	if got := Decide(t0.Add(time.Minute), w); len(got) != 0 {
		t.Errorf("decided %+v", got)
	}
}

// A package that a site has lost is staged again before the next attempt, with a new count of tries.
func TestDecideMissed(t *testing.T) {
	t.Parallel()
	g := condorGlidein(resubmit.Policy{Retries: 3}, over(1, corral.OutcomeLost))
	done, failed := staged(digest, corral.OutcomeDone, false), staged(digest, corral.OutcomeFailed, true)
	again := done
	again.EndedAt = t0.Add(2 * time.Minute)
	for _, tt := range []struct {
		name   string
		missed map[string]time.Time
		jobs   []corral.Job
		want   []string
	}{
		{"nobody has missed it", nil, []corral.Job{done}, []string{"submit pilot"}},
		{"another was missed", map[string]time.Time{"sha256:2": t0.Add(time.Minute)}, []corral.Job{done}, []string{"submit pilot"}},
		{"it was missed", map[string]time.Time{digest: t0.Add(time.Minute)}, []corral.Job{done}, []string{"stage " + digest}},
		{"and is being staged", map[string]time.Time{digest: t0.Add(time.Minute)}, []corral.Job{done, stagingNow(digest, corral.JobRunning)}, nil},
		{"and was staged", map[string]time.Time{digest: t0.Add(time.Minute)}, []corral.Job{done, again}, []string{"submit pilot"}},
		{"and staged, and missed", map[string]time.Time{digest: t0.Add(3 * time.Minute)}, []corral.Job{done, again}, []string{"stage " + digest}},
		{"and staged in vain", map[string]time.Time{digest: t0.Add(time.Minute)}, []corral.Job{failed, failed, done, failed}, []string{"stage " + digest}},
		{"and staged in vain three times", map[string]time.Time{digest: t0.Add(time.Minute)}, []corral.Job{done, failed, failed, failed}, nil},
	} {
		w := World{Site: corral.Site{State: corral.SiteReady}, Jobs: tt.jobs, Glideins: []corral.Glidein{g}, Needs: map[corral.ClusterID]Need{3: ready()}, Installed: Installed{Missed: tt.missed}}
		got := slices.DeleteFunc(kinds(Decide(t0.Add(time.Hour), w)), func(k string) bool { return k == "settle" })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: Decide = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDecideQueue(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	queued := alive(1, corral.JobQueued)
	queued.StartedAt = time.Time{}
	cancelled := queued
	cancelled.Asked = corral.AskCancel
	limit := func(d time.Duration, g corral.Glidein) corral.Glidein { g.QueueLimit = corral.Seconds(d); return g }
	condor, embedded := condorGlidein(resubmit.Policy{}, queued), glideinWith(resubmit.Policy{}, queued)
	lives := Lifetimes{Queue: 24 * hour, Renew: hour, Margin: 10 * time.Minute}
	// The walltime of an attempt is one minute.
	end := func(start time.Duration) time.Time { return t0.Add(start + time.Minute + lives.Margin) }
	stopped := ready()
	stopped.Cluster.State = corral.ClusterStopped
	tests := []struct {
		name  string
		g     corral.Glidein
		need  Need
		ends  time.Time // end of its token; zero: it has no token
		since time.Duration
		after time.Duration
		want  []string
	}{
		{"in time", limit(hour, embedded), ready(), time.Time{}, 0, hour - time.Second, []string{}},
		{"too long", limit(hour, embedded), ready(), time.Time{}, 0, hour, []string{"cancel"}},
		{"too long, in a pool of HTCondor's", limit(hour, condor), ready(), end(hour), 0, hour, []string{"cancel"}},
		{"a week, unless something else was asked", embedded, ready(), time.Time{}, 0, 7*24*hour - time.Second, []string{}},
		{"after a week", embedded, ready(), time.Time{}, 0, 7 * 24 * hour, []string{"cancel"}},
		{"running for long", limit(hour, glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))), ready(), time.Time{}, 0, 2 * hour, []string{}},
		{"it is cancelled once more", limit(hour, glideinWith(resubmit.Policy{}, cancelled)), ready(), time.Time{}, 0, 2 * hour, []string{"cancel"}},

		{"the token is good for a while", condor, ready(), end(24 * hour), 0, 23*hour - time.Second, []string{}},
		{"the token is near its end", condor, ready(), end(24 * hour), 0, 23 * hour, []string{"renew"}},
		{"the token is over", condor, ready(), end(24 * hour), 0, 30 * hour, []string{"renew"}},
		{"the token is good for as long as it may wait", limit(20*hour, condor), ready(), end(20*hour - time.Second), 0, 20*hour - time.Second, []string{}},
		{"the pool that would make another is stopped", condor, stopped, end(24 * hour), 0, 23 * hour, []string{}},
		{"no token is known", condor, ready(), time.Time{}, 0, 23 * hour, []string{}},

		{"the pool makes short tokens: the first is used for a while", condor, ready(), t0.Add(hour), 0, 29 * time.Minute, []string{}},
		{"the pool makes short tokens: half of its time is over", condor, ready(), t0.Add(hour), 0, 30 * time.Minute, []string{"renew"}},
		{"the pool makes short tokens: so is the next one", condor, ready(), t0.Add(90 * time.Minute), 30 * time.Minute, 59 * time.Minute, []string{}},
		{"the pool makes short tokens: and then the next follows", condor, ready(), t0.Add(90 * time.Minute), 30 * time.Minute, hour, []string{"renew"}},
		{"the token that was given is over", condor, ready(), t0.Add(hour), 2 * hour, 2*hour + time.Second, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{tt.g}, Lifetimes: lives,
				Jobs:  []corral.Job{staged(digest, corral.OutcomeDone, false)},
				Needs: map[corral.ClusterID]Need{3: tt.need}, Tokens: map[corral.JobID]Token{}}
			if !tt.ends.IsZero() {
				w.Tokens[1] = Token{Ends: tt.ends}
				if tt.since > 0 {
					w.Tokens[1] = Token{Ends: tt.ends, Since: t0.Add(tt.since)}
				}
			}
			if diff := cmp.Diff(tt.want, kinds(Decide(t0.Add(tt.after), w))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

// A token is valid for a day in the queue, or for the remaining patience with it.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	lives := Lifetimes{Queue: 24 * time.Hour, Renew: time.Hour, Margin: 10 * time.Minute}
	g, a := condorGlidein(resubmit.Policy{}), alive(1, corral.JobQueued)
	for _, tt := range []struct {
		after time.Duration
		want  time.Duration
	}{
		{0, 24 * time.Hour},
		{6 * 24 * time.Hour, 24 * time.Hour},
		{7*24*time.Hour - time.Hour, time.Hour},
		{8 * 24 * time.Hour, 0},
	} {
		if got := lives.Of(g, a, t0.Add(tt.after)); got != tt.want+11*time.Minute {
			t.Errorf("after %s a token is made for %s, want %s, the walltime of 1m and 10m", tt.after, got, tt.want)
		}
	}
}

// Whether an attempt failed depends on who requested its end.
func TestOverdueHasFailed(t *testing.T) {
	t.Parallel()
	a := alive(1, corral.JobQueued)
	a.StartedAt, a.Asked, a.UpdatedAt = time.Time{}, corral.AskCancel, a.CreatedAt.Add(time.Hour)
	g := glideinWith(resubmit.Policy{}, a)
	g.QueueLimit = corral.Seconds(time.Hour)
	removed := g
	removed.Asked = corral.AskCancel
	notAsked := a
	notAsked.Asked = corral.AskNothing
	for _, tt := range []struct {
		name  string
		g     corral.Glidein
		a     corral.Job
		state corral.SiteState
		want  string
	}{
		{"nobody", g, a, corral.SiteReady, "waited longer than 1h0m0s in the queue"},
		{"a user", removed, a, corral.SiteReady, ""},
		{"the site is gone", g, a, corral.SiteFailed, ""},
		{"it was not asked", g, notAsked, corral.SiteReady, ""},
	} {
		w := World{Site: corral.Site{State: tt.state}, Glideins: []corral.Glidein{tt.g}}
		if got, hopeless := w.Overdue(tt.a); got != tt.want || hopeless {
			t.Errorf("%s: Overdue = %q, want %q", tt.name, got, tt.want)
		}
	}
	seen := Sighting{Known: true, Phase: Ended, Killed: ByCancel, EndedAt: t0, Overdue: "waited longer than 1h0m0s in the queue"}
	unknown := Sighting{Missing: t0, Visibility: time.Second, Overdue: seen.Overdue}
	left := seen
	left.Report = &Report{Outcome: corral.OutcomePreempted, Reason: "terminated"}
	for _, s := range []Sighting{seen, unknown, left} {
		events := Events(a, s, t0.Add(time.Minute))
		e := events[len(events)-1]
		if e.Outcome != corral.OutcomeFailed || !e.Transient || !strings.HasPrefix(e.Reason, seen.Overdue) {
			t.Errorf("it ended as %s, transient %t: %s", e.Outcome, e.Transient, e.Reason)
		}
	}
}
