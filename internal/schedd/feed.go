package schedd

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/pool"
)

// Rhythm of a feed.
const (
	logEvery    = 100 * time.Millisecond // the event log is looked at
	lookupEvery = 30 * time.Second       // the queue is looked up, at most a twentieth of the time
	explainTime = 3 * time.Second        // between the event that a job left its worker and the one that says why
	toolTime    = 30 * time.Second       // for one command of HTCondor
	sinkRest    = time.Second            // for a sink that failed
	retryMin    = 250 * time.Millisecond // back-off after a command that got no answer, doubled each time
	retryMax    = 15 * time.Second
)

// A feed owns the jobs of one run. All but the mailbox belongs to the goroutine of run.
type feed struct {
	lg    *slog.Logger
	q     *Queue
	id    corral.RunID
	sink  pool.Sink
	dir   string // Config.Dir/RUN
	after *feed  // of the same run, that has to clean up first; nil: none

	note     note            // what of it outlives us
	trouble  error           // why the note could not be kept
	log      condor.LogFile  // its jobs' events
	jobs     map[string]*job // :: key → job
	byID     map[condor.JobID]*job
	touched  map[*job]bool // there is something to do about them
	unsent   []*job
	size     int                   // of the next submission, at most
	leaving  map[condor.JobID]bool // to be removed from the schedd
	attached time.Time
	disowned bool      // what the run did not claim in time
	unsure   bool      // the queue has to be looked up before anything is submitted
	lookupAt time.Time // again
	retryAt  time.Time // HTCondor's commands are not run before
	retry    time.Duration
	said     string    // why HTCondor's commands wait
	restAt   time.Time // the sink is not called before

	wake    chan struct{}
	ctx     context.Context // the goroutine's; never passed on
	cancel  context.CancelFunc
	serving context.Context // likewise, until it is detached
	release context.CancelFunc
	done    chan struct{} // closed when the sink is called no more
	gone    chan struct{} // closed when the goroutine is gone

	mu       sync.Mutex // guards requests
	requests []request
}

// A request is something that the run asked for: one field is set.
type request struct {
	submit, expect []execution.Job
	cancel         bool
}

func newFeed(q *Queue, run corral.RunID, sink pool.Sink) *feed {
	f := &feed{
		lg: q.lg.With("run", run), q: q, id: run, sink: sink,
		dir:  filepath.Join(q.cfg.Dir, strconv.FormatInt(int64(run), 10)),
		jobs: map[string]*job{}, byID: map[condor.JobID]*job{}, touched: map[*job]bool{}, leaving: map[condor.JobID]bool{},
		size: submitSize,
		wake: make(chan struct{}, 1), done: make(chan struct{}), gone: make(chan struct{}),
	}
	f.log.Path = filepath.Join(f.dir, "log")
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.serving, f.release = context.WithCancel(f.ctx)
	return f
}

// ask queues a request.
func (f *feed) ask(r request) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	f.rouse()
}

func (f *feed) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// close ends the goroutine and waits for it.
func (f *feed) close() {
	f.cancel()
	<-f.gone
}

// detach has the goroutine clean up, and waits until the sink is called no more.
func (f *feed) detach() {
	f.release()
	<-f.done
}

// run is the goroutine.
func (f *feed) run() {
	defer close(f.gone)
	f.serve()
	close(f.done)
	if f.ctx.Err() == nil {
		f.cleanUp()
	}
	f.q.cleaned(f)
}

// serve serves the run until it is detached.
func (f *feed) serve() {
	if !f.awaitPredecessor(f.serving) {
		return
	}
	f.open()
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	for f.serving.Err() == nil {
		f.step(time.Now())
		select {
		case <-f.serving.Done():
		case <-f.wake:
		case <-tick.C:
		}
	}
}

// awaitPredecessor waits until nothing of the run's time before is left; false if ctx ended.
func (f *feed) awaitPredecessor(ctx context.Context) bool {
	if f.after == nil {
		return true
	}
	select {
	case <-f.after.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// step does what is due at now.
func (f *feed) step(now time.Time) {
	f.take()
	f.read(now)
	if !now.Before(f.retryAt) && f.noted(now) {
		f.look(now)
		f.submit()
		f.remove()
	}
	if !now.Before(f.restAt) {
		f.tell(now)
	}
}

// take does what was asked for.
func (f *feed) take() {
	f.mu.Lock()
	requests := f.requests
	f.requests = nil
	f.mu.Unlock()
	for _, r := range requests {
		for _, j := range r.submit {
			f.claim(j, false)
		}
		for _, j := range r.expect {
			f.claim(j, true)
		}
		if r.cancel {
			f.cancelAll()
		}
	}
}

// claim makes a job one that the run waits for. It may be known from before a restart.
func (f *feed) claim(p execution.Job, expected bool) {
	f.keep(p.Dir)
	key := keyOf(p)
	j := f.jobs[key]
	if j != nil && j.end != nil && j.end.how == removed && !expected {
		f.forget(j) // cancelled, and then the run was resumed
		j = nil
	}
	if j == nil {
		j = &job{key: key}
		f.jobs[key] = j
		f.unsent = append(f.unsent, j)
		f.unsure = f.unsure || expected
	}
	j.Job, j.claimed, j.expected = p, true, expected
	f.touched[j] = true
}

// forget drops a job that is over for the run.
func (f *feed) forget(j *job) {
	delete(f.jobs, j.key)
	delete(f.byID, j.id)
	delete(f.touched, j)
}

// silent is what is said of a schedd that is away.
const silent = "HTCondor does not answer"

// answered takes note of how a command went: after one without an answer the next waits.
func (f *feed) answered(err error) {
	if err != nil {
		f.wait(silent, err)
		return
	}
	f.retry = 0
	if f.said == silent {
		f.said = ""
		f.lg.Info("HTCondor answers again")
	}
}

// wait has the next command wait, the longer the more often it is called without an answer between. It says why
// once: a cluster may be STOPPED for days.
func (f *feed) wait(why string, err error) {
	f.retry = min(max(retryMin, 2*f.retry), retryMax)
	f.retryAt = time.Now().Add(f.retry)
	if f.said != why {
		f.said = why
		f.lg.Warn(why, "error", err)
	}
}
