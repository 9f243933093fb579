package engine

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// A glidein waits with the name of the limit that blocks it, and is submitted when there is room.
func TestLimitOfASite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(s.ID, func(s *corral.Site) { s.Limits.MaxRunning = 1 })
		return err
	})
	first, second := w.glidein(s.ID, resubmit.Policy{}), w.glidein(s.ID, resubmit.Policy{})
	w.until("the second one waits", func() bool {
		return w.glideinNow(second.ID).Reason == "limit max_running of site here: 1 of 1 attempts wait or run"
	})
	w.attemptIs(first.ID, corral.JobRunning)
	if g := w.glideinNow(second.ID); g.State != corral.GlideinWaiting || len(g.Attempts) > 0 {
		t.Errorf("the second one is %s with %d attempts", g.State, len(g.Attempts))
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.AskGlidein(first.ID, corral.AskCancel, "test")
		return err
	})
	w.attemptIs(second.ID, corral.JobRunning)
}

// A glidein that waits for a relay that never starts does not block others.
func TestWaitForRelayBlocksNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reaches(counting(new(atomic.Int32))) // without streams, and so without a relay
	w.start()
	s := w.site("here")
	var first corral.Glidein
	w.write(func(tx *store.Tx) (err error) {
		if _, err = tx.SetSite(s.ID, func(s *corral.Site) { s.Limits.MaxRunning = 1 }); err != nil {
			return err
		}
		first, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
			Shape:  corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: corral.Seconds(5 * time.Minute)},
			Broker: corral.BrokerRelay})
		return err
	})
	second := w.glidein(s.ID, resubmit.Policy{})
	w.attemptIs(second.ID, corral.JobRunning)
	const why = "the site's relay is not running: "
	if g := w.glideinNow(first.ID); !strings.HasPrefix(g.Reason, why) || len(g.Attempts) > 0 {
		t.Errorf("the first one says %q with %d attempts, want %q", g.Reason, len(g.Attempts), why)
	}
}

// asked counts the commands of a connection.
type asked struct {
	gridsite.Conn
	commands *atomic.Int32
}

func (a asked) Run(ctx context.Context, c gridsite.Command) (gridsite.Result, error) {
	a.commands.Add(1)
	return a.Conn.Run(ctx, c)
}

// counting returns backends that count the commands of their connections to sites on this machine.
func counting(commands *atomic.Int32) gridsite.Backends {
	b := backends("")
	b.Transports["local"] = func(string, string) (gridsite.Conn, error) { return asked{local.Conn{}, commands}, nil }
	return b
}

// stepLog records how many commands were run in each step, and how many its log entry reports.
type stepLog struct {
	slog.Handler
	commands *atomic.Int32

	mu    sync.Mutex // guards steps
	steps [][2]int   // run, reported
}

func (h *stepLog) Enabled(context.Context, slog.Level) bool { return true }

func (h *stepLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != Stepped {
		return h.Handler.Handle(ctx, r)
	}
	run := int(h.commands.Swap(0))
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "commands" {
			h.mu.Lock()
			h.steps = append(h.steps, [2]int{run, int(a.Value.Int64())})
			h.mu.Unlock()
		}
		return true
	})
	return nil
}

// Regardless of the number of attempts at a site, a step sends at most three commands: when all are submitted, when all
// end, and when all are removed.
func TestCommandsOfAStep(t *testing.T) {
	t.Parallel()
	const n = 4
	w := newWorld(t)
	var commands atomic.Int32
	log := &stepLog{Handler: w.lg.Handler(), commands: &commands}
	w.lg = slog.New(log)
	w.reaches(counting(&commands))
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	log.mu.Lock()
	log.steps = nil // the setup is not counted
	log.mu.Unlock()
	var ids []corral.GlideinID
	w.write(func(tx *store.Tx) error {
		for range n {
			g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
				Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: corral.Seconds(5 * time.Minute)}})
			if err != nil {
				return err
			}
			ids = append(ids, g.ID)
		}
		return nil
	})
	for _, id := range ids {
		w.until("a worker", func() bool { a := w.glideinNow(id).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	}
	w.write(func(tx *store.Tx) error {
		for _, id := range ids {
			if _, err := tx.AskGlidein(id, corral.AskCancel, "test"); err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range ids {
		w.until("the end", func() bool { return w.glideinNow(id).State == corral.GlideinDeleted })
		if a := w.glideinNow(id).Attempts[0]; a.Outcome != corral.OutcomeRemoved {
			t.Errorf("an attempt ended as %s (%s)", a.Outcome, a.Reason)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for i, step := range log.steps[1:] { // the first one may have begun before
		if step[0] > commandsAStep || step[0] != step[1] {
			t.Errorf("step %d of %d ran %d commands, and says %d", i+1, len(log.steps), step[0], step[1])
		}
	}
}

// late is a batch system in which a pilot's first submission arrives after the second and then waits in the queue.
type late struct {
	gridsite.Batch
	submissions atomic.Int32
	cancelled   atomic.Int32
}

func (b *late) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if !strings.HasPrefix(spec.Tag, "corral-pilot-") {
		return b.Batch.Submit(ctx, spec)
	}
	if b.submissions.Add(1) == 1 {
		return "", errors.New("connection reset")
	}
	if _, err := b.Batch.Submit(ctx, gridsite.JobSpec{Tag: "late", Argv: []string{"/bin/sleep", "300"}, Hosts: 1, CPUs: 1}); err != nil {
		return "", err
	}
	return b.Batch.Submit(ctx, spec)
}

func (b *late) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	jobs, err := b.Batch.Poll(ctx, append(slices.Clone(tags), "late"))
	for tag, j := range jobs {
		if jobs["late"].Phase == gridsite.Running && tag != "late" && strings.HasPrefix(tag, "corral-pilot-") {
			j.Extra, j.Past = []string{"4711"}, []string{"4710"}
			jobs[tag] = j
		}
	}
	delete(jobs, "late")
	return jobs, err
}

func (b *late) CancelJobs(ctx context.Context, ids []string) error {
	if !slices.Equal(ids, []string{"4711"}) {
		return errors.New("another job would be cancelled")
	}
	b.cancelled.Add(1)
	return b.Batch.Cancel(ctx, "late", 0)
}

// A submission that arrives after it was looked up and repeated is a second job with the same tag. While it waits in
// the queue it is cancelled and recorded; if it starts, its pilot finds that the attempt already has one.
func TestLateSubmissionIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &late{}
	w.fault = func(real gridsite.Batch) gridsite.Batch { b.Batch = real; return b }
	w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	a := w.glideinNow(g.ID).Attempts[0]
	extra := func() (found []string) {
		w.view(func(tx *store.Tx) error {
			entries, err := tx.History(corral.ObjectJob, int64(a.ID), store.Page{})
			for _, e := range entries {
				if e.Event == "extra" {
					found = append(found, e.Reason)
				}
			}
			return err
		})
		return found
	}
	w.until("it is cancelled", func() bool { return b.cancelled.Load() > 0 && len(extra()) == 2 })
	const twice = "it was submitted twice: the site's job "
	if diff := cmp.Diff([]string{twice + "4710 ended by itself", twice + "4711 was cancelled"}, extra()); diff != "" {
		t.Errorf("history (-want +got): %s", diff)
	}
	fork := fork.New(local.Conn{}, s.Root)
	jobs, err := fork.Poll(t.Context(), []string{"late", a.Tag})
	if err != nil || jobs["late"].Phase != gridsite.Ended || jobs[a.Tag].Phase != gridsite.Running {
		t.Fatalf("the site has %+v (%v)", jobs, err)
	}

	files := map[string][]byte{}
	if files[jobfiles.File], err = fork.Read(t.Context(), a.Tag, jobfiles.File); err != nil {
		t.Fatal(err)
	}
	pilot, _ := filepath.Glob(filepath.Join(s.Root, "packages", "*", "*", "pilot"))
	if len(pilot) == 0 {
		pilot, _ = filepath.Glob(filepath.Join(s.Root, "boot", "*", "pilot"))
	}
	if _, err := fork.Submit(t.Context(), gridsite.JobSpec{Tag: "second", Argv: []string{pilot[0], "run"}, Files: files, Hosts: 1, CPUs: 1}); err != nil {
		t.Fatal(err)
	}
	await(t, "the second pilot is gone", func() bool {
		jobs, err := fork.Poll(t.Context(), []string{"second"})
		return err == nil && jobs["second"].Phase == gridsite.Ended
	})
	report, err := fork.Read(t.Context(), "second", jobfiles.ReportFile)
	if r, undecodable := jobfiles.DecodeReport(report); err != nil || undecodable != nil || r.Outcome != corral.OutcomeDuplicate {
		t.Errorf("the second pilot says %+v (%v, %v), want that it is a duplicate", r, err, undecodable)
	}
	if now := w.glideinNow(g.ID).Attempts; len(now) != 1 || now[0].State != corral.JobRunning || len(w.clusters.Workers(1)) != 1 {
		t.Errorf("attempts %+v, workers %+v, want one of each", now, w.clusters.Workers(1))
	}
}

// keen is a batch system that does not recognize the node names it is given.
type keen struct {
	gridsite.Batch
	excluded chan []string // for each submission of a pilot
}

func (b keen) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if !strings.HasPrefix(spec.Tag, "corral-pilot-") {
		return b.Batch.Submit(ctx, spec)
	}
	b.excluded <- spec.Exclude
	if len(spec.Exclude) > 0 {
		return "", &gridsite.Refused{Text: "Invalid node name specified"}
	}
	return "", &gridsite.Refused{Text: "enough"}
}

// A node on which several attempts in a row failed is avoided, and the history records this.
func TestBadNodesAreAvoided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := keen{excluded: make(chan []string, 10)}
	w.fault = func(real gridsite.Batch) gridsite.Batch { b.Batch = real; return b }
	stop := w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	stop()
	fail := func(node string, times int) {
		for range times {
			g := w.glidein(s.ID, resubmit.Policy{})
			w.write(func(tx *store.Tx) error {
				j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.ID, Glidein: g.ID, Tag: admission.NewTag(corral.PilotJob)})
				if err != nil {
					return err
				}
				_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved, Lost: []corral.LostHost{{Node: node, Why: "scratch is full"}}})
				return err
			})
		}
	}
	fail("n1", corral.AvoidAfter)
	fail("n2", corral.AvoidAfter-1)
	w.start()
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("the end", func() bool { return w.glideinNow(g.ID).State.Terminal() })
	if first, second := <-b.excluded, <-b.excluded; !slices.Equal(first, []string{"n1"}) || len(second) > 0 {
		t.Errorf("kept off %q, and then off %q; want n1, and then none", first, second)
	}
	var said string
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectJob, int64(w.glideinNow(g.ID).Attempts[0].ID), store.Page{})
		for _, e := range entries {
			if e.Event == "avoid" {
				said = e.Reason
			}
		}
		return err
	})
	if !strings.HasPrefix(said, "the batch system is asked to avoid the nodes n1 (3 attempts in a row failed on it") || strings.Contains(said, "n2") {
		t.Errorf("history says %q", said)
	}
}
