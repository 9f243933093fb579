package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/execution"
)

// keepConnected connects again and again until ctx ends or the dispatcher refuses for good.
func (w *worker) keepConnected(ctx context.Context, refused chan<- error) {
	var b wire.Backoff
	for {
		began := time.Now()
		g, err := wire.Dial(ctx, w.cfg.Addresses, w.cfg.CertDigest, w.hello())
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

func (w *worker) hello() *wire.Hello {
	return &wire.Hello{
		Version: wire.Version, Role: wire.RoleWorker, Tag: w.cfg.Tag, Token: w.cfg.Token, ID: w.cfg.ID,
		Instance: w.cfg.Instance, Holder: w.cfg.Holder, Host: w.host, PID: os.Getpid(),
		CPUs: w.cfg.CPUs, MemoryMiB: w.cfg.MemoryMiB, LeftMS: max(0, time.Until(w.cutAt).Milliseconds()),
	}
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
			w.cfg.registered()
			w.rouse()
		}
	}
}

func (c *Config) registered() {
	if c.Registered != nil {
		c.Registered()
	}
}

// attach begins to use a connection: it tells what the worker has, and starts the lease. What began
// under a lease that is over must not go on under the new one.
func (w *worker) attach(g *wire.Greeting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLeaseLocked(time.Now())
	w.conn, w.registered = g.Conn, false
	w.lease = time.Duration(g.Terms.LeaseMS) * time.Millisecond
	w.heartbeat = time.Duration(g.Terms.HeartbeatMS) * time.Millisecond
	w.leaseFrom = g.SentAt
	m := &wire.Message{Type: wire.TypeHeld, Results: w.resultsLocked(time.Now())}
	for key, k := range w.jobs {
		if k.running {
			m.Held = append(m.Held, wire.HeldJob{Key: key, Running: true, CPUs: k.job.CPUs, MemoryMiB: k.job.MemoryMiB})
		}
	}
	for _, k := range w.waiting {
		m.Held = append(m.Held, wire.HeldJob{Key: k.job.Key(), CPUs: k.job.CPUs, MemoryMiB: k.job.MemoryMiB})
	}
	w.fresh = nil
	w.conn.Send(m)
	if stopped := w.stoppedKeysLocked(); len(stopped) > 0 {
		w.stoppedLocked(stopped...)
	}
	if w.draining {
		w.conn.Send(&wire.Message{Type: wire.TypeDraining, Reason: "draining since before"})
	}
	w.beatLocked(time.Now())
}

// stoppedKeysLocked returns the jobs that were stopped half way and have results not acknowledged.
func (w *worker) stoppedKeysLocked() []execution.Key {
	var keys []execution.Key
	for _, u := range w.unacked {
		if u.stopped && !slices.Contains(keys, u.Key) {
			keys = append(keys, u.Key)
		}
	}
	return keys
}

func (w *worker) detach(c *wire.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == c {
		w.conn, w.registered = nil, false
		w.rouse()
	}
}

// beatLocked sends a heartbeat whose number says when.
func (w *worker) beatLocked(now time.Time) {
	w.beatAt = now
	w.conn.Send(&wire.Message{Type: wire.TypeHeartbeat, N: int64(now.Sub(w.began))})
}

// obey does what a message says; it reports whether it is the first answer over this connection, which
// says that the worker is registered.
func (w *worker) obey(m *wire.Message) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m.Type {
	case wire.TypePong:
		first = !w.registered
		w.registered = true
		if from := w.began.Add(time.Duration(m.N)); from.After(w.leaseFrom) {
			w.leaseFrom = from
		}
	case wire.TypeAssign:
		w.takeLocked(m.Jobs)
	case wire.TypeAck:
		for _, n := range m.Numbers {
			delete(w.unacked, n)
		}
		if w.draining {
			w.rouse()
		}
	case wire.TypeRecall:
		w.handBackLocked(w.waitingOf(m.Keys), "recalled")
	case wire.TypeCancel:
		w.cancelLocked(m.Keys)
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

// takeLocked takes jobs in, or hands them back at once.
func (w *worker) takeLocked(jobs []execution.Job) {
	var back []execution.Key
	for i := range jobs {
		key := jobs[i].Key()
		switch {
		case w.jobs[key] != nil: // it has it already
		case w.draining:
			back = append(back, key)
		default:
			k := &work{job: jobs[i]}
			w.jobs[key] = k
			w.waiting = append(w.waiting, k)
		}
	}
	if len(back) > 0 {
		w.sendLocked(&wire.Message{Type: wire.TypeReturned, Keys: back, Reason: "its worker leaves"})
	}
	idle := w.usedCPUs == 0
	w.startLocked(time.Now())
	if idle {
		w.rouse() // to say that it is not idle any more
	}
}

// waitingOf returns those of the jobs that have not started.
func (w *worker) waitingOf(keys []execution.Key) []*work {
	var found []*work
	for _, key := range keys {
		if k := w.jobs[key]; k != nil && !k.running {
			found = append(found, k)
		}
	}
	return found
}

func (w *worker) cancelLocked(keys []execution.Key) {
	w.handBackLocked(w.waitingOf(keys), "cancelled")
	for _, key := range keys {
		if k := w.jobs[key]; k != nil {
			w.stopLocked(k, execution.Cancelled, "its run was cancelled")
		}
	}
}

// handBackLocked gives up jobs that have not started.
func (w *worker) handBackLocked(jobs []*work, reason string) {
	if len(jobs) == 0 {
		return
	}
	keys := make([]execution.Key, len(jobs))
	for i, k := range jobs {
		keys[i] = k.job.Key()
		delete(w.jobs, keys[i])
	}
	w.waiting = slices.DeleteFunc(slices.Clone(w.waiting), func(k *work) bool { return w.jobs[k.job.Key()] != k })
	w.sendLocked(&wire.Message{Type: wire.TypeReturned, Keys: keys, Reason: reason})
	w.quietLocked()
}

// sendLocked sends m if there is a connection; without one, the next held message tells it all.
func (w *worker) sendLocked(m *wire.Message) {
	if w.conn != nil {
		w.conn.Send(m)
	}
}

// resultsLocked returns everything that is not acknowledged, in order, to be sent at now.
func (w *worker) resultsLocked(now time.Time) []wire.Report {
	var all []wire.Report
	for _, u := range w.unacked {
		u.sentAt = now
		all = append(all, u.Report)
	}
	slices.SortFunc(all, func(a, b wire.Report) int { return cmp.Compare(a.N, b.N) })
	return all
}

// repeatLocked sends results again that the dispatcher should have acknowledged by now.
func (w *worker) repeatLocked(now time.Time) {
	if w.conn == nil || !w.registered {
		return
	}
	for _, u := range w.unacked {
		if !u.sentAt.IsZero() && now.Sub(u.sentAt) > 2*w.heartbeat {
			w.fresh = nil
			w.sendResultsLocked(w.resultsLocked(now))
			return
		}
	}
}

// flushLocked sends the results that were not sent yet.
func (w *worker) flushLocked() {
	if w.conn == nil || len(w.fresh) == 0 {
		return
	}
	now := time.Now()
	for i := range w.fresh {
		if u := w.unacked[w.fresh[i].N]; u != nil {
			u.sentAt = now
		}
	}
	w.sendResultsLocked(w.fresh)
	w.fresh = w.fresh[:0]
}

func (w *worker) sendResultsLocked(results []wire.Report) {
	for part := range slices.Chunk(results, wire.MaxResults) {
		w.conn.Send(&wire.Message{Type: wire.TypeResults, Results: part})
	}
}
