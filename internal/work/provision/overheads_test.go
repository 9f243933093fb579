package provision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// joined returns an attempt whose workers were ready the given time after the start of its job; a negative time means
// never.
func joined(after time.Duration) corral.Wait {
	w := waited("normal", 4, 0)
	if after >= 0 {
		w.WorkersAt = w.StartedAt.Add(after)
	}
	return w
}

// TestStartUp: the start-up time is based on the site's earlier pilots, once there were a few of them.
func TestStartUp(t *testing.T) {
	t.Parallel()
	few := []corral.Wait{joined(time.Second), joined(-1), joined(3 * time.Second)}
	enough := append(few, joined(20*time.Second))
	for _, tc := range []struct {
		name  string
		waits []corral.Wait
		share float64
		want  time.Duration
		says  string
	}{
		{"too few", few, 0.5, 10 * time.Second, ""},
		{"typical", enough, 0.5, 3 * time.Second, "workers are ready 3s after a job's start, as learned from 3 pilots"},
		{"with confidence", enough, 0.9, 20 * time.Second, "20s"},
	} {
		f := hpc()
		f.Waits = tc.waits
		sites, said := provision.Sites([]provision.Facts{f}, provision.Caution{Share: tc.share}, now)
		if sites[0].Overhead != tc.want || !strings.Contains(strings.Join(said, "\n"), tc.says) ||
			tc.says == "" && len(said) > 0 {
			t.Errorf("%s: %s, said %q, want %s and %q", tc.name, sites[0].Overhead, said, tc.want, tc.says)
		}
	}
}

// TestLeave: how long a released pilot holds its hosts is based on earlier pilots that were cancelled, at the
// slowest of the sites, and is not shorter than assumed. Drained pilots first finish their tasks, and do not count.
func TestLeave(t *testing.T) {
	t.Parallel()
	left := func(o corral.Outcome, after time.Duration) corral.Wait {
		w := joined(0)
		w.Outcome, w.CancelledAt = o, w.StartedAt.Add(time.Hour)
		w.EndedAt = w.CancelledAt.Add(after)
		return w
	}
	removed := corral.OutcomeRemoved
	few := []corral.Wait{left(removed, 3*time.Second), left(removed, 5*time.Second), left(corral.OutcomeIdle, time.Hour),
		left(corral.OutcomeDrained, time.Hour)}
	for _, tc := range []struct {
		name  string
		waits []corral.Wait
		bound bool // there is a budget
		want  time.Duration
		says  string
	}{
		{"too few", few, false, 1200 * time.Millisecond, ""},
		{"enough", append(few, left(removed, 4*time.Second)), false, 4 * time.Second,
			"holds its hosts 4s more, as learned from 3 pilots"},
		{"sooner than assumed", append(few, left(removed, 0), left(removed, 0), left(removed, 0)), false,
			1200 * time.Millisecond, ""},
		{"too few for a budget", few, true, 15 * time.Second, "site hpc is expected to hold its hosts 15s more"},
		{"enough for a budget", append(few, left(removed, 4*time.Second)), true, 5 * time.Second,
			"site hpc is expected to hold its hosts 5s more"},
	} {
		f, slow := hpc(), hpc()
		slow.Waits = tc.waits
		sites := []provision.Facts{f, slow, f}
		if tc.bound { // a site without experience is expected to be slow
			sites = sites[1:2]
		}
		c, said := provision.Leaving(provision.Cluster(corral.Condor, false), sites, tc.bound)
		if c.Leave != tc.want || !strings.Contains(strings.Join(said, "\n"), tc.says) || tc.says == "" && len(said) > 0 {
			t.Errorf("%s: %s, said %q, want %s and %q", tc.name, c.Leave, said, tc.want, tc.says)
		}
	}
}

// TestDefaultQueueWaits: a job that named no queue waited in the site's default queue, whose waits are only assumed for
// other queues.
func TestDefaultQueueWaits(t *testing.T) {
	t.Parallel()
	f := hpc()
	f.Site.Queue = "normal,short"
	w := waited("", 4, hour)
	w.Default = "normal"
	f.Waits = []corral.Wait{w}
	sites, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
	shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 4}, Walltime: time.Hour}
	if normal, short := sites[0].Wait(shape), sites[1].Wait(shape); normal != time.Hour || short != time.Hour {
		t.Errorf("normal waits %s and short %s, want 1h", normal, short)
	}
	if said := provision.Priors([]provision.Facts{f}); len(said) != 1 || !strings.HasPrefix(said[0], "wait in queue short at hpc: no pilot has run there; ") {
		t.Errorf("%q, want the assumption about short", said)
	}
}

// TestLearnedCluster: hops are averaged over runs, weighted by tasks, together with ten assumed hops; starts per second
// never count as a limit.
func TestLearnedCluster(t *testing.T) {
	t.Parallel()
	ms := corral.Seconds(time.Millisecond)
	c, learned := provision.LearnedCluster(provision.Cluster(corral.Condor, false), []*corral.RunReport{
		nil, {}, {Hop: 100 * ms, Hops: 30, PeakRate: 40}, {Hop: 500 * ms, Hops: 10, PeakRate: 3,
			Reuse: 50 * ms, Reuses: 7}})
	if c != (plan.Cluster{Hop: 560 * time.Millisecond, Reuse: 197 * time.Millisecond, Rate: 40,
		Leave: 1200 * time.Millisecond}) || len(learned) != 2 ||
		!strings.Contains(learned[0], "takes 560ms, as learned from 2 runs") ||
		!strings.Contains(learned[1], "takes 197ms, as learned from 1 run") {
		t.Errorf("%+v, %q, want 560ms from 2 runs, 197ms from one, and 40 a second", c, learned)
	}
	c, learned = provision.LearnedCluster(provision.Cluster(corral.Embedded, false), []*corral.RunReport{{PeakRate: 1}})
	if c != provision.Cluster(corral.Embedded, false) || len(learned) != 0 {
		t.Errorf("nothing known: %+v, %q, want what is assumed", c, learned)
	}
}

// TestJoin: a pilot's first task waits for the cluster, while a task that follows another need not wait.
func TestJoin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    plan.Cluster
		want time.Duration
	}{
		{plan.Cluster{Hop: 3 * time.Second, Reuse: time.Second}, 7 * time.Second},
		{plan.Cluster{Hop: 3 * time.Second}, 5 * time.Second},
	} {
		sites := []plan.Site{{Overhead: 5 * time.Second}}
		if provision.Join(sites, tt.c); sites[0].Overhead != tt.want {
			t.Errorf("%+v: %s, want %s", tt.c, sites[0].Overhead, tt.want)
		}
	}
}
