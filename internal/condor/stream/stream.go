package stream

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Config configures the stream of a cluster.
type Config struct {
	Cluster  corral.ClusterID
	Tools    condor.Tools
	Dir      string                 // absolute path of an existing folder that only this stream uses
	Glideins func() []corral.Worker // returns the pool's workers
	Dispatch dispatch.Config        // configures the dispatcher of worker jobs

	// Claim is the time after a restart within which runs must attach themselves before existing worker jobs are
	// removed; 0: 30 s.
	Claim time.Duration
}

// A Stream is the queue for the runs of a cluster whose tasks are streamed. It implements run.Dispatcher.
type Stream struct {
	dispatcher *dispatch.Dispatcher
	roll       *roll
	client     schedd.Client
	name       string // in the schedd
	digest     string
	quit       context.CancelFunc
	done       chan struct{} // closed when the keeper has ended
}

// Open returns the stream in a folder and starts maintaining its worker jobs. The stream must be closed.
func Open(lg *slog.Logger, cfg Config) (*Stream, error) {
	cfg.Claim = cmp.Or(cfg.Claim, 30*time.Second)
	n := note{path: filepath.Join(cfg.Dir, "note.json")}
	if err := n.recall(); err != nil {
		return nil, err
	}
	r := newRoll(time.Now().Add(cfg.Claim))
	onChange := cfg.Dispatch.OnChange
	cfg.Dispatch.OnChange = func() {
		r.rouse()
		if onChange != nil {
			onChange()
		}
	}
	d := dispatch.New(lg, cfg.Dispatch)
	ctx, quit := context.WithCancel(context.Background())
	s := &Stream{
		dispatcher: d, roll: r, digest: n.digest(), name: n.Name, quit: quit, done: make(chan struct{}),
		client: schedd.Client{Tools: cfg.Tools, Attribute: jobfiles.StreamAttribute},
	}
	k := &keeper{
		lg: lg, cfg: cfg, client: s.client, note: n,
		dispatcher: d, roll: r, fresh: map[int64]bool{},
	}
	go func() {
		defer close(s.done)
		k.run(ctx)
	}()
	return s, nil
}

// Clear removes all worker jobs of a cluster that is about to be deleted.
func (s *Stream) Clear(ctx context.Context) error { return s.client.RemoveAll(ctx, s.name) }

// Close stops serving worker jobs and runs. Worker jobs continue to run and look for the next corrald.
func (s *Stream) Close() {
	s.quit()
	<-s.done
	s.dispatcher.Close()
}

// Dispatcher returns the dispatcher from which admitted worker jobs receive their tasks.
func (s *Stream) Dispatcher() *dispatch.Dispatcher { return s.dispatcher }

// TokenDigest returns the SHA-256, in hex, of the worker jobs' token.
func (s *Stream) TokenDigest() string { return s.digest }

// Attach makes sink the owner of the run's jobs.
func (s *Stream) Attach(run corral.RunID, sink dispatch.Sink) {
	s.dispatcher.Attach(run, sink)
	s.roll.attach(run)
}

// Detach removes the run and its jobs. Shortly after the last run is detached, the worker jobs are removed.
func (s *Stream) Detach(run corral.RunID) {
	s.dispatcher.Detach(run)
	s.roll.detach(run, time.Now())
}

// Submit queues jobs of attached runs.
func (s *Stream) Submit(jobs []execution.Job) {
	for i := range jobs {
		s.roll.rank(jobs[i].Run, schedd.Priority(jobs[i].Class, jobs[i].Priority))
	}
	s.dispatcher.Submit(jobs)
}

// Cancel kills the jobs of the run with the given numbers, or all its jobs if no numbers are given.
func (s *Stream) Cancel(run corral.RunID, jobs ...int64) { s.dispatcher.Cancel(run, jobs...) }

// Withdraw returns the given jobs to the run, unless they are assigned to a worker.
func (s *Stream) Withdraw(run corral.RunID, seqs []int64) { s.dispatcher.Withdraw(run, seqs) }

// Expect announces that a worker may have jobs from before a restart.
func (s *Stream) Expect(run corral.RunID, worker string, jobs []execution.Job) {
	s.dispatcher.Expect(run, worker, jobs)
}

// A roll lists the attached runs and their urgency. A roll is the only data that runs and the keeper share.
type roll struct {
	roused chan struct{} // holds a token when the keeper should take a step

	mu    sync.Mutex             // guards the fields below
	runs  map[corral.RunID]int64 // :: run → the highest priority of its jobs
	alone time.Time              // since when there have been no runs; after a restart, until when runs may attach
}

func newRoll(alone time.Time) *roll {
	return &roll{roused: make(chan struct{}, 1), runs: map[corral.RunID]int64{}, alone: alone}
}

// rouse wakes the keeper.
func (r *roll) rouse() {
	select {
	case r.roused <- struct{}{}:
	default:
	}
}

func (r *roll) attach(run corral.RunID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[run] = 0
	r.rouse()
}

// detach removes a run. When no run is left, its worker jobs are kept for a while.
func (r *roll) detach(run corral.RunID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, was := r.runs[run]; !was {
		return
	}
	delete(r.runs, run)
	if len(r.runs) == 0 {
		r.alone = now
	}
	r.rouse()
}

// rank records the priority of a run's job.
func (r *roll) rank(run corral.RunID, priority int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, there := r.runs[run]; there && priority > before {
		r.runs[run] = priority
	}
}

// fill copies the roll's data into a World.
func (r *roll) fill(w *World) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Runs, w.AloneFrom = len(r.runs), r.alone
	for _, p := range r.runs {
		w.Priority = max(w.Priority, p)
	}
}
