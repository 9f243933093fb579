package dispatch

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A courier is a connection over which the files of jobs travel that an instance of a worker has. It serves one job at
// a time, in either direction, and nothing else goes over it: a large file holds up neither heartbeats nor results. A
// worker opens as many as it has jobs with files on their way.
type courier struct {
	*wire.Conn
	d                *Dispatcher
	worker, instance string
}

// ServeCourier hands out the files of jobs that an instance of a worker has, and takes in what became of them, until
// the connection ends. The caller closes nc. An error in the middle of a parcel ends the connection, because the two
// sides no longer agree on what comes next; a refusal before it does not.
func (d *Dispatcher) ServeCourier(ctx context.Context, nc *wire.Conn, worker, instance string) {
	c := &courier{nc, d, worker, instance}
	for {
		_ = c.Net.SetReadDeadline(time.Now().Add(d.cfg.Idle)) // the port has places for so many only
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

// handOut answers with the parcel of a job, or with why there is none: Unavailable if another try may help, since the
// disk is full, say; Failed if an input cannot be read, which then fails the task; Unsatisfiable if it is fetched ahead
// and has more than most bytes, or a folder, of which nobody knows how many it has. An error means that the connection
// is of no more use.
func (c *courier) handOut(ctx context.Context, key execution.Key, most int64) error {
	refuse := func(err error) error { return c.refuse(wire.TypeParcel, err) }
	ctx, job, over, err := c.carry(ctx, key)
	if err != nil {
		return refuse(err)
	}
	defer over()
	direct, err := parcel.DirectOf(job)
	if err != nil {
		return refuse(corral.Errorf(cannot(err), "%w", err))
	}
	if most > 0 && (direct == nil || direct.Bytes() > most) {
		return refuse(corral.Errorf(corral.Unsatisfiable, "it has more than %d bytes, or a folder", most))
	}
	if direct != nil {
		c.Send(&wire.Message{Type: wire.TypeParcel})
		return direct.Send(c.Conn)
	}
	dir, err := parcel.Spool(job)
	if err != nil {
		return refuse(corral.Errorf(corral.Unavailable, "making room for a parcel: %w", err))
	}
	defer parcel.Unspool(dir)
	switch err := errors.Join(parcel.Pack(ctx, dir, job), parcel.Readable(filepath.Join(dir, parcel.InDir))); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refuse(corral.Errorf(cannot(err), "%w", err))
	}
	c.Send(&wire.Message{Type: wire.TypeParcel})
	return parcel.Send(c.Conn, dir, parcel.JobFile, parcel.InDir)
}

// cannot is what kind of refusal a parcel that cannot be made is.
func cannot(err error) corral.Kind {
	if parcel.Passing(err) {
		return corral.Unavailable
	}
	return corral.Failed
}

// takeIn receives what became of a task, puts its files where they belong, and answers with its result.
//
// The job may be given back while its files are still on their way, and be done elsewhere. So the files are first
// received into the attempt's directory, which is no other worker's; whether this one still has the job is asked again
// then, and before each output that is published. A parcel that is refused before it is read must be read to its end
// all the same, or the next message could not be found.
func (c *courier) takeIn(ctx context.Context, key execution.Key) error {
	refuse := func(err error) error { return c.refuse(wire.TypeDelivered, err) }
	_, job, over, err := c.carry(ctx, key)
	if err != nil {
		return errors.Join(refuse(err), (&wire.BulkReader{Conn: c.Conn}).Finish())
	}
	defer over()
	held := func() bool { // it may have been given back meanwhile
		_, err = c.held(key)
		return err == nil
	}
	results, trouble, broken := parcel.Delivered(c.Conn, job, held)
	switch {
	case broken != nil:
		return broken
	case errors.Is(trouble, executor.ErrStale):
		return refuse(err)
	case parcel.Passing(trouble):
		return refuse(corral.Errorf(corral.Unavailable, "%w", trouble))
	}
	m := &wire.Message{Type: wire.TypeDelivered}
	for _, r := range results {
		m.Results = append(m.Results, wire.Report{Result: r})
	}
	c.Send(m)
	return nil
}

// refuse answers with why there is nothing else to answer with. The connection stays.
func (c *courier) refuse(answer string, err error) error {
	c.Send(&wire.Message{Type: answer, Kind: corral.KindOf(err), Reason: wire.Clip(err.Error())})
	return nil
}

// carry returns a job that c's worker has, whose files are to travel over c: until over is called, a Detach of its
// run waits, which ends ctx and c.
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
	f := d.feeds[key.Run] // there is one: without it no worker holds its jobs
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

// held returns a job that c's worker has. It is Unavailable while that may still become known.
func (c *courier) held(key execution.Key) (execution.Job, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.heldLocked(key)
}

// heldLocked returns a job that c's worker has. After a restart of corrald that is not known until the worker has said
// what it holds and the run has claimed it: for so long the answer is Unavailable, and later Conflict, which makes the
// worker give up.
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
