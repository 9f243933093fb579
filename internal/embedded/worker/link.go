package worker

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// keepConnected connects repeatedly until ctx ends or the dispatcher refuses permanently. After a connection that
// lasted, the next pause is short again.
func (w *worker) keepConnected(ctx context.Context, refused chan<- error) {
	var b wire.Backoff
	for {
		began := time.Now()
		g, err := w.dial(ctx, wire.RoleWorker)
		if err == nil {
			err = w.serve(ctx, g)
			b.Forgive(time.Since(began))
		}
		if errors.Is(err, wire.ErrRefused) {
			refused <- err
			return
		}
		w.lg.Debug("not connected", "error", err)
		if !b.Wait(ctx) {
			return
		}
	}
}

// dial sends the hello, as the worker or as one of its couriers. The remaining time is sent as a duration, because
// clocks differ.
func (w *worker) dial(ctx context.Context, role wire.Role) (*wire.Greeting, error) {
	return wire.Dial(ctx, w.cfg.Addresses, w.cfg.CertDigest, &wire.Hello{
		Version: wire.Version, Role: role, Tag: w.cfg.Tag, Token: w.cfg.Token, Secret: w.cfg.Secret, ID: w.cfg.ID,
		Instance: w.cfg.Instance, Holder: w.cfg.Holder, Host: w.cfg.Host, PID: os.Getpid(),
		CPUs: w.cfg.CPUs, MemoryMiB: w.cfg.MemoryMiB, GPUs: w.cfg.GPUs, DiskMiB: w.cfg.DiskMiB,
		LeftMS: max(0, time.Until(w.cutAt).Milliseconds()), Speed: w.cfg.Speed,
	})
}

// serve uses one connection until it breaks or ctx ends.
func (w *worker) serve(ctx context.Context, g *wire.Greeting) error {
	stop := context.AfterFunc(ctx, func() { _ = g.Net.Close() })
	defer stop()
	w.attach(g)
	defer g.Close()
	defer w.detach(g.Conn)
	for {
		m, err := g.Recv(wire.MaxFrame)
		if err != nil {
			return err
		}
		if m.Type == wire.TypeRefuse {
			return wire.Refusal(wire.RoleWorker, m)
		}
		if w.obey(m) {
			if w.cfg.Registered != nil {
				w.cfg.Registered()
			}
			w.rouse()
		}
	}
}

// attach starts using a connection: it reports the worker's jobs, and starts the lease. Tasks that began under an
// expired lease must not continue under the new one: the dispatcher may have given their jobs to another worker.
func (w *worker) attach(g *wire.Greeting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.lease.over(now) {
		w.expireLocked()
	}
	w.line = line{conn: g.Conn}
	w.lease.grant(g.Terms, g.SentAt)
	w.line.send(&wire.Message{Type: wire.TypeHeld, Held: w.jobs.held(), Results: w.results.all(now)})
	if stopped := w.results.stopped(); len(stopped) > 0 {
		w.stoppedLocked(stopped...)
	}
	if w.phase != taking {
		w.line.send(&wire.Message{Type: wire.TypeDraining, Reason: "already draining"})
	}
	w.line.send(w.lease.beat(time.Now()))
}

// detach stops using a connection, unless it has already been replaced.
func (w *worker) detach(c *wire.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line.conn == c {
		w.line = line{}
		w.rouse()
	}
}

// obey handles a message; it reports whether this is the first answer over this connection, which means that the worker
// is registered. Jobs that have not started are returned at once when they are recalled or cancelled; running jobs are
// asked to end when they are cancelled, and ignore a recall.
func (w *worker) obey(m *wire.Message) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m.Type {
	case wire.TypePong:
		first = !w.line.registered
		w.line.registered = true
		w.lease.extend(m.N)
	case wire.TypeAssign:
		w.takeLocked(m.Jobs)
	case wire.TypeAck:
		w.results.acknowledge(m.Numbers)
		if w.phase != taking {
			w.rouse()
		}
	case wire.TypeRecall:
		w.handBackLocked(w.jobs.notStarted(m.Keys), "recalled")
	case wire.TypeCancel:
		w.handBackLocked(w.jobs.notStarted(m.Keys), "cancelled")
		for _, key := range m.Keys {
			if k := w.jobs.all[key]; k != nil {
				k.endLocked(execution.Cancelled, "its run was cancelled")
			}
		}
	case wire.TypeDrain:
		w.drainLocked("asked by its dispatcher")
	case wire.TypeLeave:
		select {
		case w.asked <- struct{}{}:
		default:
		}
	}
	return first
}

// takeLocked accepts jobs, or returns them at once.
func (w *worker) takeLocked(jobs []execution.Job) {
	var back []execution.Key
	for i := range jobs {
		key := jobs[i].Key()
		switch {
		case w.jobs.all[key] != nil: // the worker already has it
		case w.phase != taking:
			back = append(back, key)
		default:
			w.jobs.add(&work{w: w, job: jobs[i]})
		}
	}
	if len(back) > 0 {
		w.line.send(&wire.Message{Type: wire.TypeReturned, Keys: back, Reason: "its worker leaves"})
	}
	idle := w.jobs.room.Empty()
	w.startLocked(time.Now(), nil)
	if idle {
		w.rouse() // to report that it is not idle any more
	}
}

// handBackLocked returns jobs that have not started to the dispatcher.
func (w *worker) handBackLocked(jobs []*work, reason string) {
	if len(jobs) == 0 {
		return
	}
	w.line.send(&wire.Message{Type: wire.TypeReturned, Keys: w.jobs.giveUp(jobs), Reason: reason})
	w.endedLocked()
}

// flushLocked sends the results that have not been sent yet.
func (w *worker) flushLocked() {
	if w.line.conn != nil {
		w.line.sendResults(w.results.unsent(time.Now()))
	}
}

// A line is the connection to the dispatcher, if there is one. Without a connection no message is sent: the first
// message over the next connection reports the whole state.
type line struct {
	conn       *wire.Conn // nil while there is no connection
	registered bool       // the dispatcher has answered over conn
}

func (l line) send(m *wire.Message) {
	if l.conn != nil {
		l.conn.Send(m)
	}
}

func (l line) sendResults(reports []wire.Report) {
	for part := range slices.Chunk(reports, wire.MaxResults) {
		l.send(&wire.Message{Type: wire.TypeResults, Results: part})
	}
}
