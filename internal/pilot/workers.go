package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/pool"
)

// A worker is one of the hosts that we were asked for: the process that serves it now, and what became
// of those before.
type worker struct {
	number    int // of its host
	id        string
	node      string    // another than this one; empty: this one
	child     *child    // nil: no process
	notBefore time.Time // of the next start
	deaths    int       // of its processes in a row, none of which registered

	registeredAt time.Time // last; zero: not yet
	idleSince    time.Time // zero: it works
	idleToldAt   time.Time

	left   bool // it needs no process any more
	reason word // why
}

func (w *worker) tell(a ask) {
	if w.child != nil {
		w.child.tell(a)
	}
}

func (w *worker) kill() {
	if w.child != nil {
		w.child.kill()
	}
}

func (w *worker) hangUp() {
	if w.child != nil {
		w.child.close()
	}
}

// startWorkers starts the workers that have no process, once nothing is left of the last one: what a
// dead worker's tasks still do must not meet the same tasks being done again.
func (s *supervisor) startWorkers(now time.Time) {
	if s.dirty || !s.mayStart() {
		return
	}
	for _, w := range s.workers {
		if w.child != nil || w.left || now.Before(w.notBefore) {
			continue
		}
		w.notBefore = now.Add(restartGap)
		if w.node != "" { // a network's hiccup must not cost a node
			w.notBefore = now.Add(restartGap << w.deaths)
		}
		if err := s.startWorker(w, now); err != nil {
			s.died(w, err.Error())
		}
	}
}

func (s *supervisor) startWorker(w *worker, now time.Time) error {
	c, err := s.startProcess(w, now)
	if err != nil {
		return err
	}
	w.child, w.registeredAt, w.idleSince = c, time.Time{}, time.Time{}
	s.ears.Go(func() { c.listen(s.heard, s.done) })
	if c.far != nil {
		s.ears.Go(c.far.listen)
		s.note("worker %s is started on node %s by %s, process %d", w.id, w.node, c.far.way, c.pid)
		return nil
	}
	s.note("worker %s started as process %d", w.id, c.pid)
	return nil
}

// startProcess starts a worker process here, or what starts a host there.
func (s *supervisor) startProcess(w *worker, now time.Time) (*child, error) {
	if w.node != "" {
		return startFar(s.fanout, w.node)
	}
	if err := os.MkdirAll(s.scratchOf(w), 0o700); err != nil {
		return nil, err
	}
	o, err := s.workerOrder(w, now)
	if err != nil {
		return nil, err
	}
	return startChild(o)
}

func (s *supervisor) scratchOf(w *worker) string {
	return filepath.Join(s.dir, scratchDir, filepath.Base(w.id))
}

func (s *supervisor) workerOrder(w *worker, now time.Time) (workerOrder, error) {
	join, err := s.orderToJoin()
	host := w.node
	if host == "" {
		host = s.me.Host
	}
	if join != nil {
		join.Host = host
	}
	return workerOrder{
		ID: w.id, Tag: s.tag, Token: s.order.Token, Holder: s.me.ID, Host: host,
		Addresses: s.order.Addresses, CertDigest: s.order.CertDigest,
		CPUs: s.order.CPUs, MemoryMiB: s.order.MemoryMiB,
		EndsIn: s.end.Sub(now), Scratch: s.scratchOf(w), Condor: join,
	}, err
}

// killHung kills workers that have not said a word for too long, after passed more of our time. A
// process that is stopped, or hangs, does not kill its tasks when its lease is over; the dispatcher will
// have others do them soon after that. Time in which we were stopped ourselves, as all of a job's
// processes may be, does not count.
func (s *supervisor) killHung(passed time.Duration) {
	for _, w := range s.workers {
		limit := s.hungAfter()
		switch {
		case w.child == nil:
			continue
		case w.child.far != nil && w.child.spoken:
			limit = farSilence // its host sees to the worker itself
		case w.child.far != nil:
			limit = farStart
		case !w.child.spoken:
			continue
		}
		if w.child.hangs(passed, limit) {
			s.note("worker %s said nothing for %s and is killed", w.id, limit)
			w.child.last = word{Error: fmt.Sprintf("said nothing for %s", limit)}
			w.child.kill()
		}
	}
}

// hungAfter is how long a worker may say nothing.
func (s *supervisor) hungAfter() time.Duration {
	if s.joining == nil && s.link != nil {
		return max(hungLeast, 2*s.link.Lease()/3)
	}
	return hungCondor
}

// hear takes in what a worker's process said.
func (s *supervisor) hear(h said) {
	if h.word == nil {
		h.by.silent = true
		return
	}
	h.by.spoken, h.by.quiet = true, 0
	for _, w := range s.workers {
		if w.child == h.by {
			w.hear(*h.word, time.Now())
			s.hearHost(w, *h.word)
		}
	}
}

func (w *worker) hear(said word, now time.Time) {
	if (said.Left != "" || said.Error != "") && w.child.last.Left != leftUnable { // as we have found out ourselves
		w.child.last = said
	}
	if said.Registered {
		w.registeredAt, w.deaths = now, 0
	}
	if said.Idle == nil {
		return
	}
	w.idleToldAt, w.idleSince = now, time.Time{}
	if *said.Idle > 0 {
		w.idleSince = now.Add(-*said.Idle)
	}
}

// idleFor reports whether the worker has had nothing to do for limit. That counts from when it last
// registered, for a dispatcher that was away has tasks for it at once; and while the dispatcher is
// away it counts only when that lasts.
func (w *worker) idleFor(limit time.Duration, now time.Time) bool {
	if w.registeredAt.IsZero() || w.idleSince.IsZero() {
		return false
	}
	if now.Sub(w.idleToldAt) > awayAfter {
		limit += routeWait
	}
	return now.Sub(w.idleSince) >= limit && now.Sub(w.registeredAt) >= limit
}

// collect reaps what has ended and buries the workers' processes among it.
func (s *supervisor) collect() {
	for pid, status := range reap() {
		for _, w := range s.workers {
			if w.child != nil && w.child.pid == pid {
				w.child.ended, w.child.status = true, status
			}
		}
	}
	for _, w := range s.workers {
		if w.child != nil && w.child.gone() {
			s.bury(w)
		}
	}
}

// bury clears away the process of a worker. A process that was asked to leave, or had its reasons and
// said them, has left; another died.
func (s *supervisor) bury(w *worker) {
	c := w.child
	c.close()
	w.child, s.dirty = nil, true
	if c.last.Left != "" {
		w.left, w.reason = true, c.last
		s.note("worker %s left: %s %s", w.id, c.last.Left, c.last.Error)
		if c.last.Error != "" {
			s.lose(w)
		}
		return
	}
	s.died(w, c.obituary())
}

// died counts a death, and gives the worker up when there were too many.
func (s *supervisor) died(w *worker, how string) {
	s.say("worker died", fmt.Sprintf("worker %s %s", w.id, how))
	if w.deaths++; w.deaths > maxDeaths {
		w.left = true
		w.reason = word{Error: fmt.Sprintf("%s, %d times in a row without having registered", how, w.deaths)}
		s.note("worker %s given up", w.id)
		s.lose(w)
	}
}

// pids returns the worker processes that are not buried yet.
func (s *supervisor) pids() map[int]bool {
	pids := map[int]bool{}
	for _, w := range s.workers {
		if w.child != nil {
			pids[w.child.pid] = true
		}
	}
	return pids
}

func (s *supervisor) allLeft() bool {
	for _, w := range s.workers {
		if !w.left {
			return false
		}
	}
	return true
}

// idle reports whether every worker that is still to serve has had nothing to do for as long as asked.
func (s *supervisor) idle(now time.Time) bool {
	limit, serving := time.Duration(s.order.Idle), 0
	for _, w := range s.workers {
		if w.left {
			continue
		}
		if !w.idleFor(limit, now) {
			return false
		}
		serving++
	}
	return limit > 0 && serving > 0
}

// conclude decides to leave because every worker has: the pilot's outcome is that of the workers that
// did not fail, or failure.
func (s *supervisor) conclude() {
	last := s.workers[0].reason
	for _, w := range s.workers {
		if w.reason.Error == "" {
			last = w.reason
		}
	}
	if last.Error != "" {
		s.fail(last.Left != string(pool.LeaveRefused), "every worker failed: "+last.Error)
		return
	}
	if why, ok := departures[last.Left]; ok {
		s.leaveNow(why.outcome, why.reason)
		return
	}
	s.fail(true, "every worker left without a known reason: "+last.Left)
}
