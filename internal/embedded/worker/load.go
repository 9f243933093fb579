package worker

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// loadPrefix is the prefix of folders for the files of jobs in a worker's scratch directory.
const loadPrefix = "parcel-"

// mostAhead is the maximum number of bytes that are prefetched for a job: its folder exists in addition to the folders
// of running jobs, and no job has requested disk space for it. Larger inputs are fetched only when their job starts.
const mostAhead = 16 << 20

// sweepLoads removes folders that an earlier instance has left in a worker's scratch directory. Folders that cannot be
// removed are deleted with that directory.
func sweepLoads(scratch string) {
	entries, _ := os.ReadDir(scratch) // a missing directory is empty
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), loadPrefix) {
			_ = atomicfile.RemoveAll(filepath.Join(scratch, e.Name()))
		}
	}
}

// A load is a job whose files travel, with the folder for them. One goroutine at a time owns a load: the prefetching
// goroutine until ready is closed, then the goroutine that runs the job or gives it up. Only ctx is shared.
type load struct {
	w      *worker
	ctx    context.Context // ends when the job must
	cancel func()
	key    execution.Key
	ready  chan struct{}    // closed when prefetching has ended; nil: no prefetch
	dir    string           // empty: not created yet
	begun  bool             // some of the job's inputs may be in dir
	here   bool             // all inputs are in dir
	job    execution.Job    // in a run's directory below dir
	in     execution.Travel // transfer of its inputs, until a task's result reports it
}

func (k *work) newLoad() *load {
	l := &load{w: k.w, key: k.job.Key()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// close ends the load and removes its folder. Any remains are deleted with the scratch directory.
func (l *load) close() {
	l.cancel()
	if l.ready != nil {
		<-l.ready
	}
	if l.dir != "" {
		_ = atomicfile.RemoveAll(l.dir)
	}
}

// reads reports whether a task of the job has inputs.
func reads(job *execution.Job) bool {
	return slices.ContainsFunc(job.Tasks, func(t execution.Task) bool { return len(t.Inputs) > 0 })
}

// fetchAheadLocked prefetches files for the first waiting jobs, at most as many as are running, so that the worker
// computes while files travel. It does so for jobs whose run's directory was not seen when it was last checked: a new
// check needs system calls, which must not block other users of the worker's lock.
func (j *jobs) fetchAheadLocked() {
	running := len(j.all) - len(j.waiting)
	for _, k := range j.waiting[:min(running, len(j.waiting))] {
		if k.load == nil && j.sight.missed(&k.job) && reads(&k.job) {
			k.load = k.newLoad()
			k.load.ready = make(chan struct{})
			k.w.runners.Go(func() { k.load.fetchAhead(&k.job) })
		}
	}
}

// fetchAhead tries once to fetch the job's inputs. A failure is ignored: they are fetched again when the job starts,
// and an error counts only then.
func (l *load) fetchAhead(job *execution.Job) {
	defer close(l.ready)
	if l.make(job) != nil {
		return
	}
	for {
		reused, err := l.w.couriers.tryCarry(l.ctx, l.fetch(mostAhead))
		if err == nil || !reused || l.ctx.Err() != nil || final(err) {
			return
		}
	}
}

// bring ensures that the job's inputs are in dir. The worker already has the job itself, so nothing is fetched if its
// tasks have no inputs.
func (l *load) bring(job *execution.Job) error {
	began := time.Now()
	if l.ready != nil {
		<-l.ready
	}
	if l.dir == "" {
		if err := l.make(job); err != nil {
			return err
		}
	}
	if !reads(job) {
		return nil
	}
	if l.here { // prefetched: bytes that no task waited for say nothing about the transfer rate
		l.in = execution.Travel{In: time.Since(began)}
		return nil
	}
	err := l.w.couriers.carry(l.ctx, l.fetch(0))
	l.in.In = time.Since(began)
	return err
}

// make creates a run's directory for the job in a folder of the worker's scratch directory.
func (l *load) make(job *execution.Job) (err error) {
	if l.dir, err = os.MkdirTemp(l.w.cfg.Scratch, loadPrefix); err != nil {
		return err
	}
	if l.job, err = transfer.Away(l.dir, *job); err != nil {
		_ = atomicfile.RemoveAll(l.dir)
		l.dir = "" // it is tried again when the job starts
	}
	return err
}

// fetch fetches the job's inputs over a connection, unless they have more bytes than most; 0: no limit. When
// prefetching, a refusal by the dispatcher is ignored.
func (l *load) fetch(most int64) func(*wire.Conn) error {
	return func(c *wire.Conn) error {
		data := filepath.Join(l.job.Dir, executor.DataDir)
		if l.begun { // a connection broke before
			if err := executor.Empty(data); err != nil {
				return err
			}
		}
		c.Send(&wire.Message{Type: wire.TypeFetch, Keys: []execution.Key{l.key}, N: most})
		if err := answered(c, wire.TypeParcel, nil); err != nil {
			if most > 0 && corral.KindOf(err) != corral.Internal {
				return nil
			}
			return err
		}
		l.begun = true
		var err error
		l.in.Bytes, err = transfer.Fetched(c, data)
		l.here = err == nil
		return err
	}
}

// carry runs a job whose run's directory is not visible here: it fetches the job's inputs, and delivers the files of
// each task before the task's result. The folder is removed with the job; no file is kept for the next job. If the
// inputs cannot be fetched, all tasks of the job fail with that reason.
func (k *work) carry() {
	l := k.carried()
	defer func() { k.w.runners.Go(l.close) }() // tasks do not wait for it
	err := l.bring(&k.job)
	switch {
	case err == nil:
		last := &l.job.Tasks[len(l.job.Tasks)-1]
		k.each(&l.job, func(e *executor.Attempt, t *execution.Task) execution.Result {
			r := e.Run(k.mayPublish)
			if t == last {
				k.vacate()
			}
			return l.deliver(t, r)
		})
	case l.ctx.Err() != nil || unwanted(err):
		k.finish(nil, false)
	default:
		why := "its files could not be brought to " + k.w.cfg.Host + ": " + err.Error()
		k.each(&k.job, func(e *executor.Attempt, _ *execution.Task) execution.Result { return e.Fail(why) })
	}
}

// vacate lets the next job use the resources of k, which has no task left.
func (k *work) vacate() {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.w.jobs.vacate(k, k.w.cfg.Resources.CPUs) {
		k.w.startLocked(time.Now(), nil)
	}
}

// carried returns the load of a job whose files begin to travel. Its directory is now known to be invisible here, so
// the files of the jobs that wait behind it are prefetched.
func (k *work) carried() *load {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.load == nil {
		k.load = k.newLoad()
	}
	if k.cancelled {
		k.load.cancel()
	}
	k.w.jobs.fetchAheadLocked()
	return k.load
}

// deliver sends a task's files to the dispatcher, and returns the result as the dispatcher has changed it: an output
// that could not be published makes the task fail. If the task left no files, nothing is delivered. A task whose files
// could not be delivered because the worker had to stop counts as cut, and is repeated elsewhere.
func (l *load) deliver(t *execution.Task, r execution.Result) execution.Result {
	if r.Status == execution.Cut || r.Status == execution.Cancelled {
		return r
	}
	began := time.Now()
	travel := l.in
	l.in = execution.Travel{}
	if transfer.Nothing(&l.job, t, r) {
		r.Travel = travel
		return r
	}
	left, err := transfer.Leavings(l.ctx, l.dir, l.w.cfg.ID, t, r)
	if err == nil {
		travel.Bytes += left.Bytes()
		err = l.w.couriers.carry(l.ctx, func(c *wire.Conn) error {
			c.Send(&wire.Message{Type: wire.TypeDeliver, Keys: []execution.Key{l.key}})
			if err := left.Send(c); err != nil {
				return err
			}
			return answered(c, wire.TypeDelivered, &r)
		})
	}
	switch {
	case err == nil:
		travel.Out = time.Since(began)
		r.Travel = travel
	case l.ctx.Err() != nil || unwanted(err):
		r.Status, r.Reason = execution.Cut, wire.Clip("its worker stopped before its files were delivered")
	default:
		r.Status, r.Reason = execution.Failed, wire.Clip("its files could not be brought back: "+err.Error())
	}
	return r
}
