package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

// A worker is one of the hosts that we were asked for: the process that serves it now, and what became
// of those before.
type worker struct {
	number    int // of its host
	id        string
	node      string         // another than this one; empty: this one
	child     *process.Child // nil: no process
	notBefore time.Time      // of the next start
	deaths    int            // of its processes in a row, none of which registered

	registeredAt time.Time // last; zero: not yet
	idleSince    time.Time // zero: it works
	idleToldAt   time.Time

	left   bool         // it needs no process any more
	reason process.Word // why
}

// startWorkers starts the workers that have no process, once nothing is left of the last one: what a
// dead worker's tasks still do must not meet the same tasks being done again.
func (s *supervisor) startWorkers(now time.Time) {
	if !s.mayStart() {
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
	s.note("worker %s is started %s", w.id, c)
	return nil
}

// startProcess starts a worker process here, or what starts a host there.
func (s *supervisor) startProcess(w *worker, now time.Time) (*process.Child, error) {
	if w.node != "" {
		return s.group.StartFar(s.fanout, w.node)
	}
	if err := os.MkdirAll(s.scratchOf(w), 0o700); err != nil {
		return nil, err
	}
	o, err := s.workerOrder(w, now)
	if err != nil {
		return nil, err
	}
	return s.group.Start(o)
}

func (s *supervisor) scratchOf(w *worker) string {
	return filepath.Join(s.dir, scratchDir, filepath.Base(w.id))
}

func (s *supervisor) workerOrder(w *worker, now time.Time) (process.Order, error) {
	host := w.node
	if host == "" {
		host = s.me.Host
	}
	var join *process.JoinOrder
	var err error
	if s.joining != nil {
		join, err = s.joining.Order(s.dir, host)
	}
	return process.Order{
		ID: w.id, Tag: s.tag, Token: s.order.Token, Holder: s.me.ID, Host: host,
		Addresses: s.order.Addresses, CertDigest: s.order.CertDigest,
		CPUs: s.order.CPUs, MemoryMiB: s.order.MemoryMiB,
		EndsIn: s.end.Sub(now), Scratch: s.scratchOf(w), Condor: join,
	}, err
}

// killHung kills workers that have not said a word for too long.
func (s *supervisor) killHung(now time.Time) {
	for _, c := range s.group.KillHung(now, s.hungAfter()) {
		if w := s.workerOf(c); w != nil {
			s.note("worker %s %s and is killed", w.id, c.Last.Error)
		}
	}
}

// workerOf returns the worker whose process c is.
func (s *supervisor) workerOf(c *process.Child) *worker {
	for _, w := range s.workers {
		if w.child == c {
			return w
		}
	}
	return nil
}

// hungAfter is how long a worker may say nothing.
func (s *supervisor) hungAfter() time.Duration {
	if s.joining == nil && s.link != nil {
		return max(hungLeast, 2*s.link.Lease()/3)
	}
	return hungCondor
}

// hear takes in what a worker's process said.
func (s *supervisor) hear(h process.Said) {
	if !s.group.Note(h) {
		return
	}
	if w := s.workerOf(h.By); w != nil {
		w.hear(*h.Word, time.Now())
		s.hearHost(w, *h.Word)
	}
}

func (w *worker) hear(said process.Word, now time.Time) {
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

// collect buries the workers' processes that have ended.
func (s *supervisor) collect() {
	for _, c := range s.group.Collect() {
		s.bury(s.workerOf(c))
	}
}

// bury clears away the process of a worker. A process that was asked to leave, or had its reasons and
// said them, has left; another died.
func (s *supervisor) bury(w *worker) {
	c := w.child
	w.child = nil
	if c.Last.Left != "" {
		w.left, w.reason = true, c.Last
		s.note("worker %s left: %s %s", w.id, c.Last.Left, c.Last.Error)
		if c.Last.Error != "" {
			s.lose(w)
		}
		return
	}
	s.died(w, c.Obituary())
}

// died counts a death, and gives the worker up when there were too many.
func (s *supervisor) died(w *worker, how string) {
	s.say("worker died", fmt.Sprintf("worker %s %s", w.id, how))
	if w.deaths++; w.deaths > maxDeaths {
		w.left = true
		w.reason = process.Word{Error: fmt.Sprintf("%s, %d times in a row without having registered", how, w.deaths)}
		s.note("worker %s given up", w.id)
		s.lose(w)
	}
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
