package worker

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// loadPrefix begins the names of the folders in a worker's scratch that have files of its jobs.
const loadPrefix = "parcel-"

// mostAhead is how many bytes are fetched for a job before it starts: its folder lies beside those of jobs that run,
// and no job has asked for that room. The files of a job with more are worth the wait.
const mostAhead = 16 << 20

// sweepLoads removes what an instance that died has left in a worker's scratch. What cannot be removed goes with that.
func sweepLoads(scratch string) {
	entries, _ := os.ReadDir(scratch) // without one there is nothing
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), loadPrefix) {
			_ = atomicfile.RemoveAll(filepath.Join(scratch, e.Name()))
		}
	}
}

// A load is a job whose files travel, with the folder that they are in. One goroutine at a time has it: the one that
// fetches ahead until ready is closed, then the one that runs the job or gives it up. Only ctx is everybody's.
type load struct {
	w      *worker
	ctx    context.Context // ends when the job must
	cancel func()
	key    execution.Key
	ready  chan struct{}    // closed when fetching ahead is over; nil: nothing was fetched ahead
	dir    string           // empty: there is none yet
	begun  bool             // something of the job's inputs may be in dir
	here   bool             // all of them are
	job    execution.Job    // in a run's directory below dir
	in     execution.Travel // of its inputs, until a task's result tells of it
}

func (k *work) newLoad() *load {
	l := &load{w: k.w, key: k.job.Key()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// close ends the load: its folder goes. What stays of that goes with the scratch.
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

// fetchAheadLocked has the files fetched of jobs that start soon, while others run: of as many as run. So a worker
// computes while files travel. It is done where the last directory that was looked for was not seen: to look takes
// system calls, which must not hold up everything that waits for the worker's lock.
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

// fetchAhead tries once to bring the job's inputs. If that fails, nothing is said: they are fetched again when the job
// starts, and then what is wrong counts.
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

// bring sees to it that the job's inputs are here. The worker knows the job itself, so one whose tasks read nothing
// needs nobody.
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
	if l.here { // ahead: nothing is learned of the way from bytes that nobody waited for
		l.in = execution.Travel{In: time.Since(began)}
		return nil
	}
	err := l.w.couriers.carry(l.ctx, l.fetch(0))
	l.in.In = time.Since(began)
	return err
}

// make makes a run's directory for the job in a folder of the worker's scratch.
func (l *load) make(job *execution.Job) (err error) {
	if l.dir, err = os.MkdirTemp(l.w.cfg.Scratch, loadPrefix); err != nil {
		return err
	}
	if l.job, err = parcel.Away(l.dir, *job); err != nil {
		_ = atomicfile.RemoveAll(l.dir)
		l.dir = "" // and it is tried again when the job starts
	}
	return err
}

// fetch brings the job's inputs over a connection, unless they have more bytes than most; 0: they may have any number.
// Nothing is fetched ahead that the dispatcher refuses.
func (l *load) fetch(most int64) func(*wire.Conn) error {
	return func(c *wire.Conn) error {
		data := filepath.Join(l.job.Dir, executor.DataDir)
		if l.begun { // and a connection broke
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
		l.in.Bytes, err = parcel.Fetched(c, data)
		l.here = err == nil
		return err
	}
}

// carry runs a job whose run's directory is not seen here: its inputs are fetched, and what each of its tasks leaves is
// delivered before its result is. The folder goes with the job; nothing is kept for the next one. If the files cannot
// be brought, all tasks of the job fail with that reason.
func (k *work) carry() {
	l := k.carried()
	defer func() { k.w.runners.Go(l.close) }() // no task waits for it
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

// vacate lets the next job start on what k ran on: k has no task left.
func (k *work) vacate() {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.w.jobs.vacate(k, k.w.cfg.Resources.CPUs) {
		k.w.startLocked(time.Now(), nil)
	}
}

// carried returns the load of a job that begins to be carried. Now that its directory is known not to be seen here, the
// files of those that wait behind it are fetched.
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

// deliver brings back what a task left, and returns the result as the dispatcher has it then: an output that could not
// be published makes a failure of it. Of a task that left nothing, nothing is delivered. A task whose files could not
// be delivered, because the worker had to stop, counts as cut, and is done again elsewhere.
func (l *load) deliver(t *execution.Task, r execution.Result) execution.Result {
	if r.Status == execution.Cut || r.Status == execution.Cancelled {
		return r
	}
	began := time.Now()
	travel := l.in
	l.in = execution.Travel{}
	if parcel.Nothing(&l.job, t, r) {
		r.Travel = travel
		return r
	}
	left, err := parcel.Leavings(l.ctx, l.dir, l.w.cfg.ID, t, r)
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
