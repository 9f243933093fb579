package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// watched counts the polls of a batch system and may replace its Cancel.
type watched struct {
	gridsite.Batch
	polls  *atomic.Int32
	cancel func(real gridsite.Batch, ctx context.Context, tag string, grace time.Duration) error
}

func (b watched) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	b.polls.Add(1)
	return b.Batch.Poll(ctx, tags)
}

func (b watched) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	if b.cancel == nil {
		return b.Batch.Cancel(ctx, tag, grace)
	}
	return b.cancel(b.Batch, ctx, tag, grace)
}

// results is a sink for a run that waits for the end of its one task.
type results struct{ finished chan execution.Result }

func (r results) Assigned(string, []execution.Key) error { return nil }

func (r results) Finished(all []execution.Result) error {
	for _, one := range all {
		r.finished <- one
	}
	return nil
}

func (r results) Returned([]execution.Key, bool, time.Time, string) {}

// deaf answers no polls.
type deaf struct {
	gridsite.Batch
	now *atomic.Bool
}

func (d deaf) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if d.now.Load() {
		return nil, errors.New("no route to host")
	}
	return d.Batch.Poll(ctx, tags)
}

// Workers of a removed glidein accept no more tasks, even if its site is unreachable.
func TestWorkersOfAnUnreachedSiteAreDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var cut atomic.Bool
	w.fault = func(b gridsite.Batch) gridsite.Batch { return deaf{b, &cut} }
	w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{})
	w.untilWorkers("a worker", func(all []corral.Worker) bool { return len(all) == 1 })
	w.attemptIs(g.ID, corral.JobRunning)
	cut.Store(true)
	w.until("the site to be in trouble", func() bool { return w.siteNow(s.ID).Trouble.Why != "" })
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, "test"); return err })
	w.untilWorkers("the worker to leave", func(all []corral.Worker) bool { return len(all) == 0 })
	cut.Store(false)
	w.until("the glidein to be gone", func() bool { return w.glideinNow(g.ID).State == corral.GlideinDeleted })
}

// An attempt that is draining may take hours to finish its tasks: it is polled no more often than any other job.
func TestDrainingIsNotPolledOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var polls atomic.Int32
	w.fault = func(b gridsite.Batch) gridsite.Batch { return watched{Batch: b, polls: &polls} }
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	queue, err := w.clusters.Queue(g.Cluster, corral.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sink := results{make(chan execution.Result, 1)}
	queue.Attach(1, sink)
	started := filepath.Join(t.TempDir(), "started")
	queue.Submit([]execution.Job{{Run: 1, Seq: 1, Dir: t.TempDir(), CPUs: 1, Tasks: []execution.Task{
		{ID: "long", Attempt: 1, Argv: []string{"sh", "-c", `touch "$0"; sleep 8`, started}, Estimate: 8 * time.Second}}}})
	// A draining worker returns the tasks that it has received but not begun.
	w.untilWorkers("it works", func([]corral.Worker) bool { _, err := os.Stat(started); return err == nil })

	begin, before := time.Now(), polls.Load()
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, "test"); return err })
	if r := <-sink.finished; r.Status != execution.Done {
		t.Errorf("the task of a draining worker ended as %s: %s", r.Status, r.Reason)
	}
	// Twice as many as at the busy pace, plus a step after each record.
	if n, most := polls.Load()-before, int32(time.Since(begin)/pollBusy)*4+20; n > most {
		t.Errorf("%d polls while the attempt drained for %s, want at most %d", n, time.Since(begin), most)
	}
	w.until("the end", func() bool { return w.glideinNow(g.ID).State == corral.GlideinDeleted })
	if a := w.glideinNow(g.ID).Attempts[0]; a.Outcome != corral.OutcomeDrained {
		t.Errorf("it ended as %s (%s), want drained", a.Outcome, a.Reason)
	}
}

// An unanswered submission is looked up for as long as the site may hide it, at a pace that does not burden the site.
func TestUnansweredIsLookedUpAtLeisure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var polls atomic.Int32
	var from atomic.Pointer[time.Time]
	lost := onPilots(1, func(context.Context, gridsite.Batch, gridsite.JobSpec) (string, error) {
		now := time.Now()
		from.Store(&now)
		polls.Store(0)
		return "", errors.New("connection reset")
	})
	w.fault = func(b gridsite.Batch) gridsite.Batch { return lost(watched{Batch: b, polls: &polls}) }
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.attemptIs(g.ID, corral.JobRunning)
	took := time.Since(*from.Load()) // the visibility time plus the second submission
	if n, most := polls.Load(), int32(took/pollBusy)*4; n > most {
		t.Errorf("%d polls in %s, want at most %d", n, took, most)
	}
}

// Attempts are cancelled in parallel, because a pilot may take seconds to leave.
func TestCancelsTogether(t *testing.T) {
	t.Parallel()
	const n = 3
	w := newWorld(t)
	var polls, begun atomic.Int32
	all := make(chan struct{})
	w.fault = func(b gridsite.Batch) gridsite.Batch {
		return watched{b, &polls, func(real gridsite.Batch, ctx context.Context, tag string, grace time.Duration) error {
			if begun.Add(1) == n {
				close(all)
			}
			select {
			case <-all:
			case <-ctx.Done():
			case <-time.After(patience):
				t.Errorf("%d of %d cancellations have begun", begun.Load(), n)
			}
			return real.Cancel(ctx, tag, grace)
		}}
	}
	w.start()
	s := w.site("here")
	for range n {
		w.glidein(s.ID, resubmit.Policy{})
	}
	w.until("all are there", func() bool {
		return len(w.jobs(store.JobFilter{Site: s.ID, Kind: corral.PilotJob, Live: true})) == n
	})
	w.askRemoval(s.ID)
	w.siteIs(s.ID, corral.SiteDeleted)
}

// A job that does not end does not block the site: it is asked again at long intervals, and its history says why.
func TestJobThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var polls, asked atomic.Int32
	var stuck atomic.Bool
	stuck.Store(true)
	w.fault = func(b gridsite.Batch) gridsite.Batch {
		return watched{b, &polls, func(real gridsite.Batch, ctx context.Context, tag string, grace time.Duration) error {
			if stuck.Load() {
				asked.Add(1)
				return errors.New("its node is silent")
			}
			return real.Cancel(ctx, tag, grace)
		}}
	}
	w.start()
	s := w.site("here")
	first := w.glidein(s.ID, resubmit.Policy{})
	w.attemptIs(first.ID, corral.JobRunning)
	begin := time.Now()
	w.write(func(tx *store.Tx) error {
		_, err := tx.AskGlidein(first.ID, corral.AskCancel, "test")
		return err
	})
	a := w.glideinNow(first.ID).Attempts[0]
	w.until("its history says why", func() bool {
		return slices.ContainsFunc(w.history(corral.ObjectJob, int64(a.ID)), func(line string) bool { return strings.Contains(line, "its node is silent") })
	})
	second := w.glidein(s.ID, resubmit.Policy{})
	w.attemptIs(second.ID, corral.JobRunning)
	got, n := w.siteNow(s.ID).Trouble, asked.Load()
	if took := time.Since(begin); got.Why != "" || n > 5+int32(took/(10*time.Second)) {
		t.Errorf("the site is in trouble, %+v; the job was asked %d times in %s", got, n, took)
	}
	stuck.Store(false)
	w.until("it ends", func() bool { return w.glideinNow(first.ID).State == corral.GlideinDeleted })
}

// Regardless of how often workers register and leave, here or elsewhere, a site is not polled more often than at the
// busy pace.
func TestWorkersThatComeAndGoCostNoPolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var polls atomic.Int32
	w.fault = func(b gridsite.Batch) gridsite.Batch { return watched{Batch: b, polls: &polls} }
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	w.attemptIs(g.ID, corral.JobRunning)
	begin, before := time.Now(), polls.Load()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Since(begin) < 2*time.Second {
		w.clusters.Notify()
		<-tick.C
	}
	if n, most := polls.Load()-before, int32(time.Since(begin)/pollBusy)*2+10; n > most { // plus a step after each record
		t.Errorf("%d polls in %s, want at most %d", n, time.Since(begin), most)
	}
}

// A long trouble is recorded in the site's history once it is over; a short one is not.
func TestLongTroubleIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := New(w.lg, w.db, admission.NewClusters(w.lg, w.db, nil, dispatch.Config{}), w.cfg)
	var s corral.Site
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: "ssh://hpc", Batch: "fork", Root: "/r"})
		return err
	})
	for _, lasted := range []time.Duration{time.Second, time.Hour} {
		w.write(func(tx *store.Tx) error {
			_, err := tx.SetSite(s.ID, func(s *corral.Site) {
				s.Trouble = corral.SiteTrouble{Why: "no route to host", Since: tx.Now().Add(-lasted)}
			})
			return err
		})
		l := newSiteLoop(e, s).trouble
		l.last = "no route to host"
		if err := l.leave(t.Context()); err != nil || w.siteNow(s.ID).Trouble != (corral.SiteTrouble{}) {
			t.Errorf("%v, and the site has trouble %+v", err, w.siteNow(s.ID).Trouble)
		}
	}
	if got := w.history(corral.ObjectSite, int64(s.ID)); !slices.Equal(got, []string{"create: ", "trouble: over after 1h0m0s: no route to host"}) {
		t.Errorf("history says %q", got)
	}
}
