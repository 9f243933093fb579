package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/internal/execution"
)

// couriers are the connections over which a worker carries files, one for each job at a time.
type couriers struct {
	mu     sync.Mutex // guards what follows
	idle   []*greeting
	closed bool
}

// take returns one that is idle, or nil.
func (c *couriers) take() *greeting {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	g := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	return g
}

// give keeps g for the next job.
func (c *couriers) give(g *greeting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		g.close()
		return
	}
	c.idle = append(c.idle, g)
}

func (c *couriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, g := range c.idle {
		g.close()
	}
	c.idle = nil
}

// carry does something over a courier's connection, again if that breaks, until ctx ends, the dispatcher says no, or
// a file of this machine makes trouble.
func (w *worker) carry(ctx context.Context, do func(*conn) error) error {
	var b backoff
	for {
		reused, err := w.tryCarry(ctx, do)
		var here *fs.PathError
		switch {
		case err == nil || unwanted(err) || corral.KindOf(err) == corral.Failed || errors.As(err, &here):
			return err
		case reused && ctx.Err() == nil && corral.KindOf(err) != corral.Unavailable: // it was idle for too long
			continue
		}
		w.lg.Debug("files not carried", "err", err)
		if !b.wait(ctx) {
			return ctx.Err()
		}
	}
}

// unwanted reports whether the dispatcher does not count on this worker for the job any more.
func unwanted(err error) bool {
	return errors.Is(err, ErrRefused) || corral.KindOf(err) == corral.Conflict
}

// tryCarry does it over one connection, which may be one that was used before.
func (w *worker) tryCarry(ctx context.Context, do func(*conn) error) (reused bool, err error) {
	g := w.couriers.take()
	if reused = g != nil; !reused {
		h := w.hello()
		h.Role = RoleCourier
		if g, err = dial(ctx, w.cfg.Addresses, w.cfg.CertDigest, h); err != nil {
			return false, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = g.nc.Close() })
	err = do(g.conn)
	if !stop() || err != nil {
		g.close()
		return reused, err
	}
	w.couriers.give(g)
	return reused, nil
}

// loadPrefix begins the names of the folders in a worker's scratch that have files of its jobs.
const loadPrefix = "parcel-"

// sweepLoads removes what an instance that died has left in a worker's scratch. What cannot be removed goes with that.
func sweepLoads(scratch string) {
	entries, _ := os.ReadDir(scratch) // without one there is nothing
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), loadPrefix) {
			_ = disk.RemoveAll(filepath.Join(scratch, e.Name()))
		}
	}
}

// A load is a job whose files travelled, with the folder that they are in.
type load struct {
	w   *worker
	ctx context.Context // ends when the job must
	key execution.Key
	dir string
	job execution.Job // in a run's directory below dir
}

// carryJob runs a job whose run's directory is not seen here: its inputs are fetched, and what each of its tasks
// leaves is delivered before its result is.
func (w *worker) carryJob(k *work) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.mu.Lock()
	k.halt = cancel
	if k.cancelled {
		cancel()
	}
	w.mu.Unlock()
	l := &load{w: w, ctx: ctx, key: k.job.Key()}
	err := l.fetch()
	defer func() { _ = disk.RemoveAll(l.dir) }() // what stays goes with the scratch
	switch {
	case err == nil:
		w.runTasks(k, &l.job, l.deliver)
	case ctx.Err() != nil || unwanted(err):
		w.finish(k, nil, false)
	default:
		w.failJob(k, "its files could not be brought to "+w.host+": "+err.Error())
	}
}

// failJob books all tasks of a job as failed that could not be started.
func (w *worker) failJob(k *work, why string) {
	for i := range k.job.Tasks {
		e := w.begin(k, &k.job, i)
		if e == nil {
			w.finish(k, nil, false)
			return
		}
		e.res.StartedAt = time.Now().UTC()
		e.res.EndedAt, e.res.Status, e.res.Reason = e.res.StartedAt, execution.Failed, clip(why)
		w.finish(k, &e.res, i == len(k.job.Tasks)-1)
	}
}

// fetch brings the job's inputs, and makes what a run's directory has of them.
func (l *load) fetch() (err error) {
	if l.dir, err = os.MkdirTemp(l.w.cfg.Scratch, loadPrefix); err != nil {
		return err
	}
	err = l.w.carry(l.ctx, func(c *conn) error {
		if err := empty(l.dir); err != nil { // of what a connection that broke has brought
			return err
		}
		c.send(&message{Type: typeFetch, Keys: []execution.Key{l.key}})
		if err := answered(c, typeParcel, nil); err != nil {
			return err
		}
		return receiveParcel(c, l.dir, math.MaxInt)
	})
	if err != nil {
		return err
	}
	l.job, err = unwrap(l.dir)
	return err
}

// deliver brings back what a task left. Without that the task counts as cut.
func (l *load) deliver(t *execution.Task, r execution.Result) execution.Result {
	if r.Status == execution.Cut || r.Status == execution.Cancelled {
		return r
	}
	err := l.wrap(t, r)
	if err == nil {
		err = l.w.carry(l.ctx, func(c *conn) error {
			c.send(&message{Type: typeDeliver, Keys: []execution.Key{l.key}})
			if err := sendParcel(c, l.dir, ParcelResult, ParcelOut); err != nil {
				return err
			}
			return answered(c, typeDelivered, &r)
		})
	}
	switch {
	case err == nil:
	case l.ctx.Err() != nil || unwanted(err):
		r.Status, r.Reason = execution.Cut, clip("its worker stopped before its files were delivered")
	default:
		r.Status, r.Reason = execution.Failed, clip("its files could not be brought back: "+err.Error())
	}
	return r
}

// wrap makes the parcel of what a task left.
func (l *load) wrap(t *execution.Task, r execution.Result) error {
	out := filepath.Join(l.dir, ParcelOut)
	if err := errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o700)); err != nil {
		return err
	}
	n := 0
	files, err := collect(l.ctx, l.dir, t, &r, &n)
	if err != nil {
		return err
	}
	back := parcelResult{Worker: l.w.cfg.ID, Tasks: []parcelTask{{Result: r, Files: files}}}
	return writeJSON(filepath.Join(l.dir, ParcelResult), back)
}

// answered waits for an answer of this type; it puts the result that it carries into r, unless that is nil.
func answered(c *conn, kind string, r *execution.Result) error {
	m, err := c.recv(maxFrame)
	switch {
	case err != nil:
		return noEOF(err)
	case m.Type != kind || m.Kind == "" && r != nil && len(m.Results) != 1:
		return fmt.Errorf("%w: %s instead of %s", errProtocol, m.Type, kind)
	case m.Kind != "":
		return corral.Errorf(m.Kind, "%s", m.Reason)
	case r != nil:
		*r = m.Results[0].Result
	}
	return nil
}
