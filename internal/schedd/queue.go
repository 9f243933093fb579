package schedd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/pool"
)

// A Config says which schedd, and where to keep what belongs to its jobs.
type Config struct {
	Tools condor.Tools
	Dir   string // absolute, on a local disk; made if it is not there. Nobody else's

	// Lease is how long a worker keeps a job whose schedd is away, and the schedd waits for a worker that is; 0: 2 min.
	Lease time.Duration
	// Claim is how long runs have to attach themselves and claim their jobs after a restart; 0: 30 s. What nobody
	// claimed is removed.
	Claim time.Duration
	// Patience is how long jobs that HTCondor refuses are submitted again before they have failed; 0: 5 min.
	Patience time.Duration
}

// A Queue gives jobs of runs to a schedd. It is a run.Queue.
type Queue struct {
	lg  *slog.Logger
	cfg Config

	mu      sync.Mutex // guards what follows
	feeds   map[corral.RunID]*feed
	closing map[corral.RunID]*feed // detached, but not cleaned up yet
	closed  bool

	quit  context.CancelFunc
	swept chan struct{} // closed when the goroutine of sweep is gone
}

// New returns the queue. Its Close ends what it does.
func New(lg *slog.Logger, cfg Config) *Queue {
	cfg.Lease, cfg.Claim = cmp.Or(cfg.Lease, 2*time.Minute), cmp.Or(cfg.Claim, 30*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 5*time.Minute)
	q := &Queue{lg: lg, cfg: cfg, feeds: map[corral.RunID]*feed{}, closing: map[corral.RunID]*feed{}, swept: make(chan struct{})}
	ctx, quit := context.WithCancel(context.Background())
	q.quit = quit
	go q.sweep(ctx)
	return q
}

// Attach makes sink the owner of the run's jobs, in place of another one.
func (q *Queue) Attach(run corral.RunID, sink pool.Sink) {
	if f := q.feed(run); f != nil {
		f.close()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	f := newFeed(q, run, sink)
	f.after = q.closing[run]
	q.feeds[run] = f
	go f.run()
}

// Detach forgets the run, removes its jobs from the schedd and deletes their files. It does not wait for HTCondor.
func (q *Queue) Detach(run corral.RunID) {
	q.mu.Lock()
	f := q.feeds[run]
	delete(q.feeds, run)
	if f != nil {
		q.closing[run] = f
	}
	q.mu.Unlock()
	if f != nil {
		f.detach()
	}
}

// Submit queues jobs of attached runs.
func (q *Queue) Submit(jobs []execution.Job) {
	for len(jobs) > 0 {
		run, n := jobs[0].Run, 1
		for n < len(jobs) && jobs[n].Run == run {
			n++
		}
		if f := q.feed(run); f != nil {
			f.ask(request{submit: slices.Clone(jobs[:n])})
		} else {
			q.lg.Error("jobs of a run that is not attached", "run", run, "jobs", n)
		}
		jobs = jobs[n:]
	}
}

// Cancel removes the run's jobs from the schedd and returns them all.
func (q *Queue) Cancel(run corral.RunID) {
	if f := q.feed(run); f != nil {
		f.ask(request{cancel: true})
	}
}

// Expect looks for jobs from before a restart, whichever worker has them now.
func (q *Queue) Expect(run corral.RunID, _ string, jobs []execution.Job) {
	if f := q.feed(run); f != nil {
		f.ask(request{expect: jobs})
	}
}

func (q *Queue) feed(run corral.RunID) *feed {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.feeds[run]
}

// Close lets go of all runs. Their jobs go on, and are found again by the next Queue with the same Dir.
func (q *Queue) Close() {
	q.quit()
	<-q.swept
	q.mu.Lock()
	q.closed = true
	var feeds []*feed
	for _, f := range q.feeds {
		feeds = append(feeds, f)
	}
	for _, f := range q.closing {
		feeds = append(feeds, f)
	}
	q.mu.Unlock()
	for _, f := range feeds {
		f.cancel()
	}
	for _, f := range feeds {
		<-f.gone
	}
}

// sweep cleans up after runs that were over before the last corrald could.
func (q *Queue) sweep(ctx context.Context) {
	defer close(q.swept)
	select {
	case <-ctx.Done():
		return
	case <-time.After(q.cfg.Claim):
	}
	entries, err := os.ReadDir(q.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		q.lg.Warn("looking for what runs have left", "error", err)
	}
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			q.abandon(corral.RunID(n))
		}
	}
}

// abandon cleans up after a run, unless somebody has attached it.
func (q *Queue) abandon(run corral.RunID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.feeds[run] != nil || q.closing[run] != nil {
		return
	}
	f := newFeed(q, run, nil)
	f.release()
	q.closing[run] = f
	go f.run()
}

// cleaned forgets a run whose files are gone.
func (q *Queue) cleaned(f *feed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing[f.id] == f {
		delete(q.closing, f.id)
	}
}

// bounded is ctx for one command of HTCondor.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, toolTime)
}
