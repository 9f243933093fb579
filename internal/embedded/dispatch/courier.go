package dispatch

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// A courier is a connection that carries the files of jobs held by one worker instance. It serves one job at a time, in
// either direction. It carries nothing but files, so a large file delays neither heartbeats nor results. A worker opens
// one courier for each job whose files are in transit.
type courier struct {
	*wire.Conn
	d                *Dispatcher
	worker, instance string
}

// ServeCourier sends and receives the files of jobs that a worker instance holds, until the connection ends. The caller
// closes nc. An error in the middle of a parcel ends the connection, because the two sides no longer agree on which
// message comes next; a refusal before the parcel does not end it.
func (d *Dispatcher) ServeCourier(ctx context.Context, nc *wire.Conn, worker, instance string) {
	c := &courier{nc, d, worker, instance}
	for {
		_ = c.Net.SetReadDeadline(time.Now().Add(d.cfg.Idle)) // the port limits the number of connections
		m, err := c.Recv(wire.MaxHello)
		if err != nil {
			return
		}
		switch m.Type {
		case wire.TypeFetch:
			err = c.handOut(ctx, m.Keys[0], m.N)
		case wire.TypeDeliver:
			err = c.takeIn(ctx, m.Keys[0])
		default:
			d.lg.Info("courier disconnected", "worker", worker, "sent", m.Type)
			return
		}
		if err != nil {
			d.lg.Info("courier disconnected", "worker", worker, "error", err)
			return
		}
	}
}

// handOut sends the parcel of a job, or the kind of error that prevents it: Unavailable if another attempt may succeed,
// for example when the disk is full; Failed if an input cannot be read, which fails the task; Unsatisfiable if the
// parcel is prefetched and has more than most bytes or contains a folder, whose size is unknown. An error means that
// the connection can no longer be used.
func (c *courier) handOut(ctx context.Context, key execution.Key, most int64) error {
	refuse := func(err error) error { return c.refuse(wire.TypeParcel, err) }
	ctx, job, over, err := c.carry(ctx, key)
	if err != nil {
		return refuse(err)
	}
	defer over()
	direct, err := transfer.DirectOf(job)
	if err != nil {
		return refuse(corral.Errorf(cannot(err), "%w", err))
	}
	if most > 0 && (direct == nil || direct.Bytes() > most) {
		return refuse(corral.Errorf(corral.Unsatisfiable, "the parcel exceeds %d bytes or contains a folder", most))
	}
	if direct != nil {
		c.Send(&wire.Message{Type: wire.TypeParcel})
		return direct.Send(c.Conn)
	}
	dir, err := transfer.Spool(job)
	if err != nil {
		return refuse(corral.Errorf(corral.Unavailable, "making room for a parcel: %w", err))
	}
	defer transfer.Unspool(dir)
	switch err := errors.Join(transfer.Pack(ctx, dir, job), transfer.Readable(filepath.Join(dir, transfer.InDir))); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refuse(corral.Errorf(cannot(err), "%w", err))
	}
	c.Send(&wire.Message{Type: wire.TypeParcel})
	return transfer.Send(c.Conn, dir, transfer.JobFile, transfer.InDir)
}

// cannot returns the kind of refusal for an error that prevents a parcel.
func cannot(err error) corral.Kind {
	if transfer.Passing(err) {
		return corral.Unavailable
	}
	return corral.Failed
}

// takeIn receives the results and files of a task, puts the files in place, and replies with the results.
//
// The job may be returned, and completed by another worker, while its files are in transit. The files are therefore
// first received into the attempt's directory, which no other worker uses; takeIn checks that this worker still holds
// the job after that, and again before it publishes each output. Even if a parcel is refused before it is read, it must
// be read to its end to find the start of the next message.
func (c *courier) takeIn(ctx context.Context, key execution.Key) error {
	refuse := func(err error) error { return c.refuse(wire.TypeDelivered, err) }
	_, job, over, err := c.carry(ctx, key)
	if err != nil {
		return errors.Join(refuse(err), (&wire.BulkReader{Conn: c.Conn}).Finish())
	}
	defer over()
	held := func() bool { // the job may have been returned in the meantime
		_, err = c.held(key)
		return err == nil
	}
	results, trouble, broken := transfer.Delivered(c.Conn, job, held)
	switch {
	case broken != nil:
		return broken
	case errors.Is(trouble, executor.ErrStale):
		return refuse(err)
	case transfer.Passing(trouble):
		return refuse(corral.Errorf(corral.Unavailable, "%w", trouble))
	}
	m := &wire.Message{Type: wire.TypeDelivered}
	for _, r := range results {
		m.Results = append(m.Results, wire.Report{Result: r})
	}
	c.Send(m)
	return nil
}

// refuse replies with the reason for a refusal. The connection stays open.
func (c *courier) refuse(answer string, err error) error {
	c.Send(&wire.Message{Type: answer, Kind: corral.KindOf(err), Reason: wire.Clip(err.Error())})
	return nil
}

// carry returns a job that c's worker holds and whose files are about to travel over c. Until over is called, a Detach
// of the job's run cancels ctx, closes c and waits for that call.
func (c *courier) carry(
	ctx context.Context, key execution.Key,
) (_ context.Context, _ execution.Job, over func(), _ error) {
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	job, err := c.heldLocked(key)
	if err != nil {
		return nil, execution.Job{}, nil, err
	}
	f := d.feeds[key.Run] // never nil: without a feed no worker holds the run's jobs
	ctx, cancel := context.WithCancel(ctx)
	f.carries[c.Conn] = cancel
	f.carried.Add(1)
	return ctx, job, func() {
		cancel()
		d.mu.Lock()
		delete(f.carries, c.Conn)
		d.mu.Unlock()
		f.carried.Done()
	}, nil
}

// held returns a job that c's worker holds. The error is Unavailable if it is not yet known whether the worker holds
// the job.
func (c *courier) held(key execution.Key) (execution.Job, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.heldLocked(key)
}

// heldLocked returns a job that c's worker holds. After a restart of corrald, it is unknown which jobs a worker holds
// until the worker has reported its jobs and the run has claimed them. Until then the error is Unavailable; later it is
// Conflict, which makes the worker give up.
func (c *courier) heldLocked(key execution.Key) (execution.Job, error) {
	d, m := c.d, c.d.members.get(c.worker)
	switch {
	case d.closed || m == nil || m.instance == "" || m.strangers[key] != nil && !m.strangers[key].cancelled:
		if d.closed || time.Now().Before(d.claims) {
			return execution.Job{}, corral.Errorf(corral.Unavailable, "not yet known what worker %s has", c.worker)
		}
	case m.instance == c.instance:
		if e := m.held[key]; e != nil && e.sent && !e.cancelled {
			return e.job, nil
		}
	}
	return execution.Job{}, corral.Errorf(corral.Conflict,
		"worker %s does not have job %d of run %d", c.worker, key.Seq, key.Run)
}
