//go:build sites

package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/staging"
)

// A glidein for a pool has its worker package staged while the site stays READY. Its attempt gets everything that
// real workers need to join the pool, where they count as the attempt's.
func TestGlideinOfAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pool()
	w.workerPackage("23.4.0", "x86_64")
	p := w.workerPackage(htcondorVersion, "x86_64")
	w.workerPackage("25.14.1", "x86_64")        // it would join the pool but never match a job
	w.workerPackage(htcondorVersion, "aarch64") // does not run here
	w.fault = queues(w.dir)
	w.cfg.Supply = delivery.Supply{Way: delivery.WayPush, CacheBytes: 1} // no space for packages that are not needed
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	g := w.condorGlidein(s.ID, func(g *corral.Glidein) { g.CCB, g.Slots = []string{"broker:9618"}, corral.SlotsStatic })
	a := w.queued(g.ID)

	if lines := w.history(corral.ObjectGlidein, int64(g.ID)); !slices.Contains(lines, "derive: package "+p.Name+" is being staged") {
		t.Errorf("the glidein's history does not say what it waited for: %q", lines)
	}
	jobs := w.jobs(store.JobFilter{Site: s.ID, Kind: corral.SetupJob})
	if len(jobs) != 2 || jobs[1].Package != p.Digest || jobs[1].Outcome != corral.OutcomeDone {
		t.Errorf("setup jobs %+v, want the site's and one for %s", jobs, p.Name)
	}
	for _, digest := range []string{w.siteNow(s.ID).PackageDigest, p.Digest} {
		if dir, err := staging.Dir(s.Root, packages.Package{Digest: digest}); err != nil || !exists(dir) {
			t.Errorf("package %s is not at the site", digest)
		}
	}
	if lines := w.history(corral.ObjectSite, int64(s.ID)); !slices.Contains(lines, "supply: package "+p.Name+" is delivered by push: as corrald was configured") {
		t.Errorf("the site's history does not say how the package came: %q", lines)
	}
	moves := w.history(corral.ObjectSite, int64(s.ID))
	if n := slices.IndexFunc(moves, func(l string) bool { return strings.HasPrefix(l, "staged: ") }); n < 0 || slices.ContainsFunc(moves[n+1:], func(l string) bool { return !strings.HasPrefix(l, "supply: ") && !strings.HasPrefix(l, "fetch: ") }) {
		t.Errorf("the site did not stay READY: %q", moves)
	}
	o, err := jobfiles.Decode(w.given(a, jobfiles.File))
	if err != nil {
		t.Fatal(err)
	}
	want := &jobfiles.Condor{Package: p.Name, Digest: p.Digest, Collector: c.Collector, Broker: corral.BrokerAuto, CCB: []string{"broker:9618"},
		Static: true, Cluster: "mine", Site: "here", Glidein: g.ID, Attempt: a.ID}
	if diff := cmp.Diff(want, o.Pilot.Condor); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	secret := string(w.given(a, jobfiles.PoolToken))
	token, err := condor.ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	lifetime := 24*time.Hour + 5*time.Minute + usualTokens.Margin
	if off := time.Until(token.Expires) - lifetime; off < -10*time.Minute || off > time.Minute {
		t.Errorf("the token ends at %s, want in about %s", token.Expires, lifetime)
	}

	w.workers(c, a, secret)
	w.until("a worker", func() bool { return w.glideinNow(g.ID).Attempts[0].Workers == 1 })
	got := w.clusters.Workers(c.ID)
	if len(got) != 1 || got[0].Attempt != a.ID || got[0].CPUs != 2 || got[0].Cluster != c.ID {
		t.Errorf("workers %+v", got)
	}
	offer, err := w.clusters.Offer(t.Context(), c.ID)
	if err != nil || offer.CPUs != 2 {
		t.Errorf("offer %+v (%v), want the 2 cpus that have registered", offer, err)
	}
}

// A package that the site has lost and a pilot has missed is staged again before the next attempt.
func TestLostPackageIsStagedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	p := w.workerPackage(htcondorVersion, "x86_64")
	batch := queue{root: filepath.Join(w.dir, "here"), all: &sync.Map{}}
	w.fault = func(b gridsite.Batch) gridsite.Batch { return queue{b, batch.root, batch.all} }
	w.start()
	s := w.site("here")
	g := w.condorGlidein(s.ID, func(g *corral.Glidein) { g.Resubmit.Retries = 1 })
	a := w.queued(g.ID)
	dir, err := staging.Dir(s.Root, packages.Package{Digest: p.Digest})
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = jobfiles.WriteReport(jobdir.Path(s.Root, a.Tag), jobfiles.Report{Outcome: corral.OutcomeFailed, Transient: true, Reason: "it is not installed", Missing: p.Digest})
	}
	if err != nil {
		t.Fatal(err)
	}
	batch.all.Store(a.Tag, gridsite.Ended)
	w.until("another attempt", func() bool { return len(w.glideinNow(g.ID).Attempts) == 2 })
	if b := w.queued(g.ID); b.Number != 2 || !exists(dir) {
		t.Errorf("attempt %d waits; the package is there: %t", b.Number, exists(dir))
	}
	if jobs := w.jobs(store.JobFilter{Site: s.ID, Kind: corral.SetupJob}); len(jobs) != 3 {
		t.Errorf("%d setup jobs, want the site's and two for the package", len(jobs))
	}
}

// Packages named in the orders of queued attempts stay at the site when another version is staged.
func TestPackagesOfTheQueueAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	old := w.workerPackage("23.4.0", "x86_64")
	w.fault = queues(w.dir)
	w.cfg.Supply.CacheBytes = 1
	w.start()
	s := w.site("here")
	w.queued(w.condorGlidein(s.ID, nil).ID)
	next := w.workerPackage(htcondorVersion, "x86_64")
	w.queued(w.condorGlidein(s.ID, nil).ID)
	for _, p := range []corral.Package{old, next} {
		if dir, err := staging.Dir(s.Root, packages.Package{Digest: p.Digest}); err != nil || !exists(dir) {
			t.Errorf("package %s is not at the site", p.Name)
		}
	}
}

// Without a package there is no glidein: the reason describes the remedy, at once or when the problem is found.
func TestNoWorkerPackage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pool()
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	catalog := w.cfg.Catalog
	check := func() error { return catalog.CheckGlidein(t.Context(), w.siteNow(s.ID), c) }
	if err := check(); corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), "corral package build") {
		t.Errorf("CheckGlidein = %v", err)
	}
	w.workerPackage("25.14.1", "x86_64")
	w.workerPackage(htcondorVersion, "aarch64")
	err := check()
	for _, word := range []string{"25.14.1", "newer than the pool's HTCondor 23.9.6", "is for linux/aarch64", "corral package build"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("CheckGlidein = %v, want something about %q", err, word)
		}
	}
	g := w.condorGlidein(s.ID, nil)
	w.until("it failed", func() bool { return w.glideinNow(g.ID).State == corral.GlideinFailed })
	if got := w.glideinNow(g.ID); got.Reason != err.Error() {
		t.Errorf("the glidein failed: %q, want %q", got.Reason, err)
	}
	w.workerPackage(htcondorVersion, "x86_64")
	if err := check(); err != nil {
		t.Errorf("CheckGlidein = %v with a package that fits", err)
	}
}

// A package that cannot be staged fails the glideins that need it after three tries, and nothing else. A later
// request tries again.
func TestPackageThatCannotBeStaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	missing := signer.Sign(packages.Package{Name: "htcondor-23.9.6-x86_64-linux-static", What: htcondor.Worker, Version: htcondorVersion,
		Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}, Digest: "sha256:" + strings.Repeat("7", 64), SizeBytes: 1})
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreatePackage(corral.Package{Name: missing.Name, What: missing.What, Version: missing.Version, Platform: missing.Platform,
			Digest: missing.Digest, SizeBytes: missing.SizeBytes, Key: string(missing.Key), Signature: missing.Signature, Owner: "local"})
		return err
	})
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	other := w.glidein(s.ID, resubmit.Policy{})
	g := w.condorGlidein(s.ID, nil)
	w.until("it failed", func() bool { return w.glideinNow(g.ID).State == corral.GlideinFailed })
	if got := w.glideinNow(g.ID); !strings.Contains(got.Reason, "could not be staged") || !strings.Contains(got.Reason, "cannot be pushed") {
		t.Errorf("reason %q", got.Reason)
	}
	tries := func() int { return len(w.jobs(store.JobFilter{Site: s.ID, Kind: corral.SetupJob})) - 1 }
	if n := tries(); n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	if got := w.siteNow(s.ID).State; got != corral.SiteReady {
		t.Errorf("the site is %s", got)
	}
	w.attemptIs(other.ID, corral.JobRunning)
	if got := w.glideinNow(other.ID); got.State != corral.GlideinActive || len(got.Attempts) != 1 {
		t.Errorf("the other glidein is %s: %s", got.State, got.Reason)
	}
	w.condorGlidein(s.ID, nil)
	w.until("another try", func() bool { return tries() == 4 })
}

// A token that is about to expire while its attempt waits is replaced at the site, also by the next corrald.
func TestTokenIsReplacedInTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	w.fault = queues(w.dir)
	w.cfg.Tokens = reconcile.Lifetimes{Queue: 4 * time.Second, Renew: 2 * time.Second, Margin: time.Second}
	stop := w.start()
	s := w.site("here")
	g := w.condorGlidein(s.ID, nil)
	a := w.queued(g.ID)
	first := w.given(a, jobfiles.PoolToken)
	replaced := func(before []byte) []byte {
		t.Helper()
		var now []byte
		w.until("a new token", func() bool { now = w.given(a, jobfiles.PoolToken); return !bytes.Equal(now, before) })
		token, err := condor.ParseToken(string(now))
		if err != nil {
			t.Fatal(err)
		}
		old, err := condor.ParseToken(string(before))
		if err != nil || token.Expires.Before(old.Expires) || token.ID == old.ID {
			t.Errorf("token %s in place of %s", token, old)
		}
		return now
	}
	second := replaced(first)
	w.until("its history says so", func() bool {
		return slices.Contains(w.history(corral.ObjectJob, int64(a.ID)), "token: it was replaced at the site before it expired")
	})
	stop()
	w.start()
	replaced(second)
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskCancel, "test"); return err })
	w.until("all of them are revoked", func() bool {
		var left []corral.PoolToken
		w.view(func(tx *store.Tx) (err error) { left, err = tx.PoolTokensOver(2); return err })
		return len(left) == 0 && w.glideinNow(g.ID).State == corral.GlideinDeleted
	})
}

// An attempt that waits too long is cancelled; this counts as temporary, so another follows if retries are left.
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	for _, kind := range []corral.ClusterKind{corral.Embedded, corral.Condor} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cluster := corral.ClusterID(1)
			if kind == corral.Condor {
				cluster = w.pool().ID
				w.workerPackage(htcondorVersion, "x86_64")
			}
			w.fault = queues(w.dir)
			w.start()
			s := w.site("here")
			g := w.condorGlidein(s.ID, func(g *corral.Glidein) {
				g.Cluster, g.QueueLimit, g.Resubmit = cluster, corral.Seconds(time.Second), resubmit.Policy{Retries: 1}
			})
			w.until("another attempt", func() bool { return len(w.glideinNow(g.ID).Attempts) == 2 })
			a := w.glideinNow(g.ID).Attempts[0]
			if a.Outcome != corral.OutcomeFailed || !a.Transient || a.Reason != "waited longer than 1s in the queue" {
				t.Errorf("it ended as %s, transient %t: %s", a.Outcome, a.Transient, a.Reason)
			}
			if late := a.TokenEndsAt.Sub(a.CreatedAt); late < time.Second+5*time.Minute || late > time.Second+5*time.Minute+2*usualTokens.Margin {
				t.Errorf("its token for corrald is good for %s", late)
			}
			w.until("the end", func() bool { return w.glideinNow(g.ID).State == corral.GlideinFailed })
			if got := w.glideinNow(g.ID).Reason; !strings.Contains(got, "waited longer than 1s in the queue") {
				t.Errorf("reason %q", got)
			}
		})
	}
}

// A crash between the token's creation and the submission wastes a token: the attempt gets another, under the same
// tag.
func TestLostRequestGetsANewToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	waits := queues(w.dir)
	lost := onPilots(1, answer(errors.New("connection reset")))
	w.fault = func(b gridsite.Batch) gridsite.Batch { return lost(waits(b)) }
	w.start()
	g := w.condorGlidein(w.site("here").ID, nil)
	a := w.queued(g.ID)
	token, err := condor.ParseToken(string(w.given(a, jobfiles.PoolToken)))
	if err != nil {
		t.Fatal(err)
	}
	var tokens []corral.PoolToken
	w.view(func(tx *store.Tx) (err error) { tokens, err = tx.PoolTokensWaiting(1); return err })
	if len(tokens) != 2 || a.Number != 1 || tokens[1].ID != token.ID {
		t.Errorf("attempt %d has tokens %+v, at the site is %s; want two, the last one there", a.Number, tokens, token)
	}
}

// A glidein waits for a pool that is not running, and reports that.
func TestStoppedPoolIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	w.fault = queues(w.dir)
	s := w.site("here")
	g := w.condorGlidein(s.ID, nil)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveCluster(c.ID, corral.ClusterStop, "as asked"); return err })
	w.clusterIs(c.ID, corral.ClusterStopped)
	w.start()
	w.siteIs(s.ID, corral.SiteReady)
	w.until("it says so", func() bool { return strings.HasPrefix(w.glideinNow(g.ID).Reason, "cluster mine is STOPPED") })
	if n := len(w.glideinNow(g.ID).Attempts); n != 0 {
		t.Errorf("%d attempts without a pool", n)
	}
	w.write(func(tx *store.Tx) error { _, err := tx.MoveCluster(c.ID, corral.ClusterStart, "as asked"); return err })
	w.queued(g.ID)
}

// silent issues no token and contacts no pool.
type silent struct{ admission.Pools }

func (silent) Mint(context.Context, corral.ClusterID, corral.JobID, time.Duration) (string, time.Time, error) {
	return "", time.Time{}, errors.New("the collector does not answer")
}

// mean has no token that workers may have.
type mean struct{ admission.Pools }

func (mean) Mint(context.Context, corral.ClusterID, corral.JobID, time.Duration) (string, time.Time, error) {
	return "", time.Time{}, corral.Errorf(corral.Forbidden, "the one that was given must not go to a site")
}

// If a site may never have a token, a glidein fails and reports that.
func TestTokenThatMustNotGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	w.start()
	w.clusters.UsePools(mean{w.pools})
	g := w.condorGlidein(w.site("here").ID, func(g *corral.Glidein) { g.Resubmit.Retries = 3 })
	w.until("it failed", func() bool { return w.glideinNow(g.ID).State == corral.GlideinFailed })
	if got := w.glideinNow(g.ID); len(got.Attempts) != 1 || !strings.Contains(got.Reason, "must not go to a site") {
		t.Errorf("after %d attempts it failed: %s", len(got.Attempts), got.Reason)
	}
}

// short creates tokens that expire earlier than requested, as a pool of another administrator may.
type short struct{ admission.Pools }

func (s short) Mint(ctx context.Context, c corral.ClusterID, a corral.JobID, lifetime time.Duration) (string, time.Time, error) {
	return s.Pools.Mint(ctx, c, a, min(lifetime, time.Hour))
}

// Tokens that expire too soon are reported and used, each for a while.
func TestPoolWithShortTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	w.fault = queues(w.dir)
	w.start()
	w.clusters.UsePools(short{w.pools})
	s := w.site("here")
	a := w.queued(w.condorGlidein(s.ID, nil).ID)
	w.queued(w.condorGlidein(s.ID, nil).ID) // the site's loop makes many steps
	n := 0
	w.view(func(tx *store.Tx) error {
		tokens, err := tx.PoolTokensWaiting(s.ID)
		for _, token := range tokens {
			if token.Attempt == a.ID {
				n++
			}
		}
		return err
	})
	lines := strings.Join(w.history(corral.ObjectJob, int64(a.ID)), "\n")
	if n != 1 || strings.Count(lines, "token: the pool's token for the workers ends at ") != 1 || strings.Count(lines, "token: ") != 1 {
		t.Errorf("the attempt was given %d tokens; its history:\n%s", n, lines)
	}
}

// A pool that issues no token is asked again at long intervals and does not delay other glideins.
func TestPoolWithoutTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.workerPackage(htcondorVersion, "x86_64")
	w.start()
	w.clusters.UsePools(silent{w.pools})
	s := w.site("here")
	g := w.condorGlidein(s.ID, nil)
	w.attemptIs(g.ID, corral.JobNew)
	other := w.glidein(s.ID, resubmit.Policy{})
	w.attemptIs(other.ID, corral.JobRunning)
	a := w.glideinNow(g.ID).Attempts[0]
	lines := strings.Join(w.history(corral.ObjectJob, int64(a.ID)), "\n")
	if a.State != corral.JobNew || strings.Count(lines, "token: there is no token for the workers: the collector does not answer") != 1 {
		t.Errorf("the attempt is %s; its history:\n%s", a.State, lines)
	}
}
