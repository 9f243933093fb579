package pool

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// keepConnected connects again and again until ctx ends or the dispatcher refuses for good.
func (w *worker) keepConnected(ctx context.Context, refused chan<- error) {
	var b backoff
	for {
		began := time.Now()
		g, err := dial(ctx, w.cfg.Addresses, w.cfg.CertDigest, w.hello())
		if err == nil {
			err = w.serve(ctx, g)
			b.forgive(time.Since(began))
		}
		if errors.Is(err, ErrRefused) {
			refused <- err
			return
		}
		w.lg.Debug("not connected", "err", err)
		if !b.wait(ctx) {
			return
		}
	}
}

func (w *worker) hello() *hello {
	return &hello{
		Version: Version, Role: RoleWorker, Tag: w.cfg.Tag, Token: w.cfg.Token, ID: w.cfg.ID,
		Instance: w.cfg.Instance, Holder: w.cfg.Holder, Host: w.host, PID: os.Getpid(),
		CPUs: w.cfg.CPUs, MemoryMiB: w.cfg.MemoryMiB, LeftMS: max(0, time.Until(w.cutAt).Milliseconds()),
	}
}

// serve uses one connection until it breaks or ctx ends.
func (w *worker) serve(ctx context.Context, g *greeting) error {
	stop := context.AfterFunc(ctx, func() { _ = g.nc.Close() })
	defer stop()
	w.attach(g)
	defer g.close()
	defer w.detach(g.conn)
	for {
		m, err := g.recv(maxFrame)
		if err != nil {
			return err
		}
		if m.Type == typeRefuse {
			return refusal(RoleWorker, m)
		}
		if w.obey(m) {
			w.cfg.registered()
			w.rouse()
		}
	}
}

func (c *WorkerConfig) registered() {
	if c.Registered != nil {
		c.Registered()
	}
}

// attach begins to use a connection: it tells what the worker has, and starts the lease. What began
// under a lease that is over must not go on under the new one.
func (w *worker) attach(g *greeting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLeaseLocked(time.Now())
	w.conn, w.registered = g.conn, false
	w.lease = time.Duration(g.terms.LeaseMS) * time.Millisecond
	w.heartbeat = time.Duration(g.terms.HeartbeatMS) * time.Millisecond
	w.leaseFrom = g.sentAt
	m := &message{Type: typeHeld, Results: w.resultsLocked(time.Now())}
	for key, k := range w.jobs {
		if k.running {
			m.Held = append(m.Held, heldJob{key, true, k.job.CPUs, k.job.MemoryMiB})
		}
	}
	for _, k := range w.waiting {
		m.Held = append(m.Held, heldJob{k.job.Key(), false, k.job.CPUs, k.job.MemoryMiB})
	}
	w.fresh = nil
	w.conn.send(m)
	if stopped := w.stoppedKeysLocked(); len(stopped) > 0 {
		w.stoppedLocked(stopped...)
	}
	if w.draining {
		w.conn.send(&message{Type: typeDraining, Reason: "draining since before"})
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

func (w *worker) detach(c *conn) {
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
	w.conn.send(&message{Type: typeHeartbeat, N: int64(now.Sub(w.began))})
}

// obey does what a message says; it reports whether it is the first answer over this connection, which
// says that the worker is registered.
func (w *worker) obey(m *message) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m.Type {
	case typePong:
		first = !w.registered
		w.registered = true
		if from := w.began.Add(time.Duration(m.N)); from.After(w.leaseFrom) {
			w.leaseFrom = from
		}
	case typeAssign:
		w.takeLocked(m.Jobs)
	case typeAck:
		for _, n := range m.Numbers {
			delete(w.unacked, n)
		}
		if w.draining {
			w.rouse()
		}
	case typeRecall:
		w.handBackLocked(w.waitingOf(m.Keys), "recalled")
	case typeCancel:
		w.cancelLocked(m.Keys)
	case typeDrain:
		w.drainLocked("asked by its dispatcher")
	case typeLeave:
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
		w.sendLocked(&message{Type: typeReturned, Keys: back, Reason: "its worker leaves"})
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
	w.sendLocked(&message{Type: typeReturned, Keys: keys, Reason: reason})
	w.quietLocked()
}

// sendLocked sends m if there is a connection; without one, the next held message tells it all.
func (w *worker) sendLocked(m *message) {
	if w.conn != nil {
		w.conn.send(m)
	}
}

// resultsLocked returns everything that is not acknowledged, in order, to be sent at now.
func (w *worker) resultsLocked(now time.Time) []report {
	var all []report
	for _, u := range w.unacked {
		u.sentAt = now
		all = append(all, u.report)
	}
	slices.SortFunc(all, func(a, b report) int { return cmp.Compare(a.N, b.N) })
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

func (w *worker) sendResultsLocked(results []report) {
	for part := range slices.Chunk(results, maxResults) {
		w.conn.send(&message{Type: typeResults, Results: part})
	}
}
