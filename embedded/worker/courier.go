package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/internal/execution"
)

// couriers are the connections over which a worker carries files, one for each job at a time. An idle one is kept for
// the next job, because to dial, and to be admitted, takes longer than a small file.
type couriers struct {
	lg   *slog.Logger
	dial func(context.Context, wire.Role) (*wire.Greeting, error)

	mu     sync.Mutex // guards what follows
	idle   []*wire.Greeting
	closed bool
}

// take returns one that is idle, or nil.
func (c *couriers) take() *wire.Greeting {
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
func (c *couriers) give(g *wire.Greeting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		g.Close()
		return
	}
	c.idle = append(c.idle, g)
}

// close ends the idle ones, and each of the others when its job gives it back.
func (c *couriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, g := range c.idle {
		g.Close()
	}
	c.idle = nil
}

// carry does something over a courier's connection, again if that breaks, until ctx ends, the dispatcher says no, or a
// file of this machine makes trouble. The dispatcher hangs up on couriers that are idle, so a connection that was kept
// may turn out to be dead: then another is tried at once, without a pause.
func (c *couriers) carry(ctx context.Context, do func(*wire.Conn) error) error {
	var b wire.Backoff
	for {
		reused, err := c.tryCarry(ctx, do)
		_, here := errors.AsType[*fs.PathError](err)
		switch {
		case err == nil || unwanted(err) || corral.KindOf(err) == corral.Failed || here:
			return err
		case reused && ctx.Err() == nil && corral.KindOf(err) != corral.Unavailable: // it was idle for too long
			continue
		}
		c.lg.Debug("files not carried", "error", err)
		if !b.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// unwanted reports whether the dispatcher does not count on this worker for the job any more.
func unwanted(err error) bool {
	return errors.Is(err, wire.ErrRefused) || corral.KindOf(err) == corral.Conflict
}

// tryCarry does it over one connection, which may be one that was used before. A connection over which something failed
// is closed: the two sides may no longer agree on what comes next.
func (c *couriers) tryCarry(ctx context.Context, do func(*wire.Conn) error) (reused bool, err error) {
	g := c.take()
	if reused = g != nil; !reused {
		if g, err = c.dial(ctx, wire.RoleCourier); err != nil {
			return false, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = g.Net.Close() })
	err = do(g.Conn)
	if !stop() || err != nil {
		g.Close()
		return reused, err
	}
	c.give(g)
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
	job execution.Job    // in a run's directory below dir
	in  execution.Travel // of its inputs, until a task's result tells of it
}

// carry runs a job whose run's directory is not seen here: its inputs are fetched, and what each of its tasks leaves is
// delivered before its result is. The folder goes with the job; nothing is kept for the next one. If the files cannot
// be brought, all tasks of the job fail with that reason.
func (k *work) carry() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k.w.mu.Lock()
	k.halt = cancel
	if k.cancelled {
		cancel()
	}
	k.w.mu.Unlock()
	l := &load{w: k.w, ctx: ctx, key: k.job.Key()}
	err := l.fetch(&k.job)
	defer func() { _ = disk.RemoveAll(l.dir) }() // what stays goes with the scratch
	switch {
	case err == nil:
		k.each(&l.job, func(e *executor.Attempt, t *execution.Task) execution.Result {
			return l.deliver(t, e.Run(k.mayPublish))
		})
	case ctx.Err() != nil || unwanted(err):
		k.finish(nil, false)
	default:
		why := "its files could not be brought to " + k.w.cfg.Host + ": " + err.Error()
		k.each(&k.job, func(e *executor.Attempt, _ *execution.Task) execution.Result { return e.Fail(why) })
	}
}

// fetch brings the job's inputs into a folder of the worker's scratch, and makes what a run's directory has of them. A
// connection that broke may have left half of a parcel there, which goes first. The worker knows the job itself, so one
// whose tasks read nothing needs nobody.
func (l *load) fetch(job *execution.Job) (err error) {
	if l.dir, err = os.MkdirTemp(l.w.cfg.Scratch, loadPrefix); err != nil {
		return err
	}
	if !slices.ContainsFunc(job.Tasks, func(t execution.Task) bool { return len(t.Inputs) > 0 }) {
		l.job, err = parcel.Away(l.dir, *job)
		return err
	}
	began := time.Now()
	err = l.w.couriers.carry(l.ctx, func(c *wire.Conn) error {
		if err := executor.Empty(l.dir); err != nil { // of what a connection that broke has brought
			return err
		}
		c.Send(&wire.Message{Type: wire.TypeFetch, Keys: []execution.Key{l.key}})
		if err := answered(c, wire.TypeParcel, nil); err != nil {
			return err
		}
		l.job, l.in.Bytes, err = parcel.Fetched(c, l.dir)
		return err
	})
	l.in.In = time.Since(began)
	return err
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

// answered waits for an answer of this type; it puts the result that it carries into r, unless that is nil.
func answered(c *wire.Conn, kind string, r *execution.Result) error {
	m, err := c.Recv(wire.MaxFrame)
	switch {
	case err != nil:
		return wire.NoEOF(err)
	case m.Type != kind || m.Kind == "" && r != nil && len(m.Results) != 1:
		return fmt.Errorf("%w: %s instead of %s", wire.ErrProtocol, m.Type, kind)
	case m.Kind != "":
		return corral.Errorf(m.Kind, "%s", m.Reason)
	case r != nil:
		*r = m.Results[0].Result
	}
	return nil
}
