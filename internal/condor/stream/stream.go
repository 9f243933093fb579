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
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Config says which cluster's stream it is, and where.
type Config struct {
	Cluster  corral.ClusterID
	Tools    condor.Tools
	Dir      string                 // of the stream alone, absolute; it exists
	Glideins func() []corral.Worker // those of the pool
	Dispatch dispatch.Config        // the terms for worker jobs

	// Claim is how long runs have to attach themselves after a restart, before worker jobs that are there are removed;
	// 0: 30 s.
	Claim time.Duration
}

// A Stream is the queue of a cluster's runs whose tasks are streamed. It is a run.Queue.
type Stream struct {
	dispatcher *dispatch.Dispatcher
	roll       *roll
	client     schedd.Client
	name       string // in the schedd
	digest     string
	quit       context.CancelFunc
	done       chan struct{} // closed when the keeper is gone
}

// Open returns the stream in a folder, and begins to keep its worker jobs. It has to be closed.
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

// Clear removes all worker jobs, of a cluster that is about to be forgotten.
func (s *Stream) Clear(ctx context.Context) error { return s.client.RemoveAll(ctx, s.name) }

// Close ends the dealings with worker jobs and runs. Worker jobs go on, and look for a successor.
func (s *Stream) Close() {
	s.quit()
	<-s.done
	s.dispatcher.Close()
}

// Dispatcher is where worker jobs that have been admitted take their tasks from.
func (s *Stream) Dispatcher() *dispatch.Dispatcher { return s.dispatcher }

// TokenDigest is the SHA-256, in hex, of the token that worker jobs show.
func (s *Stream) TokenDigest() string { return s.digest }

// Attach makes sink the owner of the run's jobs.
func (s *Stream) Attach(run corral.RunID, sink dispatch.Sink) {
	s.dispatcher.Attach(run, sink)
	s.roll.attach(run)
}

// Detach forgets the run and its jobs. When no run is left the worker jobs are removed, after a moment.
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

// Cancel kills jobs of the run, or all of them if none is named.
func (s *Stream) Cancel(run corral.RunID, jobs ...int64) { s.dispatcher.Cancel(run, jobs...) }

// Withdraw returns those of the run's jobs that no worker has.
func (s *Stream) Withdraw(run corral.RunID, seqs []int64) { s.dispatcher.Withdraw(run, seqs) }

// Expect says that a worker may have jobs from before a restart.
func (s *Stream) Expect(run corral.RunID, worker string, jobs []execution.Job) {
	s.dispatcher.Expect(run, worker, jobs)
}

// A roll says which runs are attached, and how urgent they are. It is all that runs and the keeper share.
type roll struct {
	roused chan struct{} // holds a token when the keeper is to look

	mu    sync.Mutex             // guards what follows
	runs  map[corral.RunID]int64 // :: run → the highest priority of a job of it
	alone time.Time              // since when there is none; after a restart, until when earlier runs may attach
}

func newRoll(alone time.Time) *roll {
	return &roll{roused: make(chan struct{}, 1), runs: map[corral.RunID]int64{}, alone: alone}
}

// rouse has the keeper look.
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

// detach takes a run off the roll. Worker jobs that no run needs any more are kept for a while, from now on.
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

// rank notes how urgent a job of a run is.
func (r *roll) rank(run corral.RunID, priority int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, there := r.runs[run]; there && priority > before {
		r.runs[run] = priority
	}
}

// fill puts into a World what the roll knows.
func (r *roll) fill(w *World) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Runs, w.AloneFrom = len(r.runs), r.alone
	for _, p := range r.runs {
		w.Priority = max(w.Priority, p)
	}
}
