package schedd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// A Config names the schedd that accepts the jobs and the folder for their files.
type Config struct {
	Tools condor.Tools
	Dir   string // absolute path, on a local disk and not used otherwise; created if necessary

	// Lease is how long a worker keeps a job while the schedd is unreachable, and how long the schedd waits for an
	// unreachable worker; 0: 2 min.
	Lease time.Duration
	// Claim is the time after a restart within which runs must attach themselves and claim their jobs; 0: 30 s. Jobs
	// that are still unclaimed after that are removed.
	Claim time.Duration
	// Patience is how long a job that HTCondor refuses is resubmitted before it counts as failed; 0: 5 min.
	Patience time.Duration
}

// A Submitter submits the jobs of runs to a schedd. It implements run.Dispatcher. It only manages the trackers: each
// run has at most one tracker that serves it, and possibly earlier trackers that clean up one after the other.
type Submitter struct {
	lg  *slog.Logger
	cfg Config

	mu       sync.Mutex                // guards the fields below
	trackers map[corral.RunID]*tracker // of attached runs
	closing  map[corral.RunID]*tracker // detached, but still cleaning up
	closed   bool

	quit  context.CancelFunc
	swept chan struct{} // closed when the goroutine of sweep has ended
}

// New returns a queue, which must be closed.
func New(lg *slog.Logger, cfg Config) *Submitter {
	cfg.Lease, cfg.Claim = cmp.Or(cfg.Lease, 2*time.Minute), cmp.Or(cfg.Claim, 30*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 5*time.Minute)
	q := &Submitter{
		lg: lg, cfg: cfg, swept: make(chan struct{}),
		trackers: map[corral.RunID]*tracker{}, closing: map[corral.RunID]*tracker{},
	}
	ctx, quit := context.WithCancel(context.Background())
	q.quit = quit
	go q.sweep(ctx)
	return q
}

// Attach makes sink the owner of the run's jobs, replacing any other sink.
func (q *Submitter) Attach(run corral.RunID, sink dispatch.Sink) {
	if t := q.tracker(run); t != nil {
		t.life.cancel()
		<-t.life.gone
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	t := newTracker(q, run, sink)
	if before := q.closing[run]; before != nil {
		t.life.before = before.life.gone
	}
	q.trackers[run] = t
	go q.serve(t)
}

// serve runs a tracker, and forgets the run once its files are gone.
func (q *Submitter) serve(t *tracker) {
	defer close(t.life.gone)
	t.main()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing[t.run] == t {
		delete(q.closing, t.run)
	}
}

// Detach drops the run, removes its jobs from the schedd and deletes their files. It does not wait for HTCondor.
func (q *Submitter) Detach(run corral.RunID) {
	q.mu.Lock()
	t := q.trackers[run]
	delete(q.trackers, run)
	if t != nil {
		q.closing[run] = t
	}
	q.mu.Unlock()
	if t != nil {
		t.life.release()
		<-t.life.done
	}
}

// Submit queues jobs of attached runs.
func (q *Submitter) Submit(jobs []execution.Job) {
	for len(jobs) > 0 {
		run, n := jobs[0].Run, 1
		for n < len(jobs) && jobs[n].Run == run {
			n++
		}
		if !q.ask(run, request{submit: slices.Clone(jobs[:n])}) {
			q.lg.Error("jobs of a run that is not attached", "run", run, "jobs", n)
		}
		jobs = jobs[n:]
	}
}

// Cancel removes jobs of the run from the schedd and returns them to the run: all jobs, or those with the given
// numbers.
func (q *Submitter) Cancel(run corral.RunID, jobs ...int64) {
	q.ask(run, request{cancel: len(jobs) == 0, kill: jobs})
}

// Withdraw removes the given jobs that no worker has started from the schedd, and returns them to the run.
func (q *Submitter) Withdraw(run corral.RunID, seqs []int64) { q.ask(run, request{withdraw: seqs}) }

// Expect searches for jobs from before a restart, whichever worker runs them now.
func (q *Submitter) Expect(run corral.RunID, _ string, jobs []execution.Job) {
	q.ask(run, request{expect: jobs})
}

// ask passes a request to a run's tracker, and returns false if there is no tracker.
func (q *Submitter) ask(run corral.RunID, r request) bool {
	t := q.tracker(run)
	if t != nil {
		t.mail.put(r)
	}
	return t != nil
}

func (q *Submitter) tracker(run corral.RunID) *tracker {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.trackers[run]
}

// Close detaches from all runs. Their jobs continue and are found again by the next Submitter with the same Dir.
func (q *Submitter) Close() {
	q.quit()
	<-q.swept
	q.mu.Lock()
	q.closed = true
	trackers := slices.AppendSeq(slices.Collect(maps.Values(q.trackers)), maps.Values(q.closing))
	q.mu.Unlock()
	for _, t := range trackers {
		t.life.cancel()
	}
	for _, t := range trackers {
		<-t.life.gone
	}
}

// sweep cleans up after runs for which the previous corrald could not do so before it ended. Runs that are still wanted
// have attached themselves before the cleanup begins.
func (q *Submitter) sweep(ctx context.Context) {
	defer close(q.swept)
	select {
	case <-ctx.Done():
		return
	case <-time.After(q.cfg.Claim):
	}
	entries, err := os.ReadDir(q.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		q.lg.Warn("listing the folders of earlier runs", "error", err)
	}
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			q.abandon(corral.RunID(n))
		}
	}
}

// abandon cleans up after a run unless it is attached.
func (q *Submitter) abandon(run corral.RunID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trackers[run] != nil || q.closing[run] != nil {
		return
	}
	t := newTracker(q, run, nil)
	t.life.release()
	q.closing[run] = t
	go q.serve(t)
}
