package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
)

// serveCourier hands out the files of jobs that h's worker has, and takes in what became of them, until the
// connection ends. The caller closes c.
func (d *Dispatcher) serveCourier(ctx context.Context, c *conn, h *hello) {
	for {
		_ = c.nc.SetReadDeadline(time.Now().Add(d.cfg.Idle)) // the port has places for so many only
		m, err := c.recv(maxHello)
		if err != nil {
			return
		}
		switch m.Type {
		case typeFetch:
			err = d.handOut(ctx, c, h, m.Keys[0])
		case typeDeliver:
			err = d.takeIn(ctx, c, h, m.Keys[0])
		default:
			d.lg.Info("courier disconnected", "worker", h.ID, "sent", m.Type)
			return
		}
		if err != nil {
			d.lg.Info("courier disconnected", "worker", h.ID, "err", err)
			return
		}
	}
}

// handOut answers with the parcel of a job. An error means that the connection is of no more use.
func (d *Dispatcher) handOut(ctx context.Context, c *conn, h *hello, key execution.Key) error {
	refuse := func(err error) error {
		c.send(&message{Type: typeParcel, Kind: corral.KindOf(err), Reason: clip(err.Error())})
		return nil
	}
	ctx, job, over, err := d.carry(ctx, c, h, key)
	if err != nil {
		return refuse(err)
	}
	defer over()
	dir, err := spool(job)
	if err != nil {
		return refuse(corral.Errorf(corral.Unavailable, "making room for a parcel: %w", err))
	}
	defer unspool(dir)
	switch err := errors.Join(pack(ctx, dir, job), readable(filepath.Join(dir, ParcelIn))); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && Passing(err):
		return refuse(corral.Errorf(corral.Unavailable, "%w", err))
	case err != nil:
		return refuse(corral.Errorf(corral.Failed, "%w", err))
	}
	c.send(&message{Type: typeParcel})
	return sendParcel(c, dir, ParcelJob, ParcelIn)
}

// takeIn receives what became of a task, puts its files where they belong, and answers with its result.
func (d *Dispatcher) takeIn(ctx context.Context, c *conn, h *hello, key execution.Key) error {
	refuse := func(err error) error {
		c.send(&message{Type: typeDelivered, Kind: corral.KindOf(err), Reason: clip(err.Error())})
		return nil
	}
	_, job, over, err := d.carry(ctx, c, h, key)
	if err != nil {
		return errors.Join(refuse(err), (&bulkReader{c: c}).finish())
	}
	defer over()
	dir, err := spool(job)
	if err != nil {
		return err
	}
	defer unspool(dir)
	if err := receiveParcel(c, dir, filesOf(job)); err != nil {
		return err
	}
	held := func() bool { // it may have been given back meanwhile
		_, err = d.heldBy(h, key)
		return err == nil
	}
	if !held() {
		return refuse(err)
	}
	results, trouble, broken := unpack(dir, job, held)
	switch {
	case broken != nil:
		return broken
	case errors.Is(trouble, errStale):
		return refuse(err)
	case Passing(trouble):
		return refuse(corral.Errorf(corral.Unavailable, "%w", trouble))
	}
	m := &message{Type: typeDelivered}
	for _, r := range results {
		m.Results = append(m.Results, report{Result: r})
	}
	c.send(m)
	return nil
}

// filesOf is how many files one task of a job brings back at most.
func filesOf(job execution.Job) int {
	const described, printed, recorded = 1, 2, 1
	most := 0
	for i := range job.Tasks {
		most = max(most, len(job.Tasks[i].Outputs))
	}
	return described + printed + recorded + most
}

// SpoolDir is the folder in a run's directory, while there are any, of the parcels on their way: links to the run's files
// can be made there.
const SpoolDir = ".parcels"

// spool makes a folder for a parcel, in one that keeps its place there when the parcel is made anew; unspool removes both.
func spool(job execution.Job) (dir string, err error) {
	in := filepath.Join(job.Dir, SpoolDir)
	for range 10 { // another parcel's end may remove in
		if err = os.MkdirAll(in, 0o700); err == nil {
			dir, err = os.MkdirTemp(in, "")
		}
		switch {
		case err == nil:
			dir = filepath.Join(dir, "parcel")
			return dir, os.Mkdir(dir, 0o700)
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", err
}

func unspool(dir string) {
	place := filepath.Dir(dir)
	_ = os.RemoveAll(place)            // what stays goes with Sweep
	_ = os.Remove(filepath.Dir(place)) // unless others are in it
}

// Sweep removes the parcels from a run's directory that a dispatcher which was killed has left there. The run must have
// no dispatcher.
func Sweep(run string) error { return os.RemoveAll(filepath.Join(run, SpoolDir)) }

// readable says of which file of a folder that is not so.
func readable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			if to, e := os.Readlink(filepath.Join(dir, e.Name())); e == nil {
				return fmt.Errorf("reading input %s: %w", to, errors.Unwrap(err))
			}
			return err
		}
		f.Close()
	}
	return nil
}

// carry returns a job that h's worker has, for whoever carries its files over c: until over is called, a Detach of its
// run waits, which ends ctx and c.
func (d *Dispatcher) carry(ctx context.Context, c *conn, h *hello, key execution.Key) (_ context.Context, _ execution.Job, over func(), _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	job, err := d.heldByLocked(h, key)
	if err != nil {
		return nil, execution.Job{}, nil, err
	}
	f := d.feeds[key.Run] // whose jobs nobody holds once it is gone
	ctx, cancel := context.WithCancel(ctx)
	f.carries[c] = cancel
	f.carried.Add(1)
	return ctx, job, func() {
		cancel()
		d.mu.Lock()
		delete(f.carries, c)
		d.mu.Unlock()
		f.carried.Done()
	}, nil
}

// heldBy returns a job that h's worker has. It is Unavailable while that may still become known.
func (d *Dispatcher) heldBy(h *hello, key execution.Key) (execution.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heldByLocked(h, key)
}

func (d *Dispatcher) heldByLocked(h *hello, key execution.Key) (execution.Job, error) {
	m := d.member(h.ID)
	switch {
	case d.closed || m == nil || m.instance == "" || m.strangers[key] != nil && !m.strangers[key].cancelled:
		if d.closed || time.Now().Before(d.claims) {
			return execution.Job{}, corral.Errorf(corral.Unavailable, "not yet known what worker %s has", h.ID)
		}
	case m.instance == h.Instance:
		if e := m.held[key]; e != nil && e.sent && !e.cancelled {
			return e.job, nil
		}
	}
	return execution.Job{}, corral.Errorf(corral.Conflict, "worker %s does not have job %d of run %d", h.ID, key.Seq, key.Run)
}

// Passing reports whether the trouble is this machine's, and may be over soon.
func Passing(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}, func(e error) bool {
		return errors.Is(err, e)
	})
}
