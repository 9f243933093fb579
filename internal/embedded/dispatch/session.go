package dispatch

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// ServeWorker serves an admitted worker instance until its connection ends. The caller closes c. The first message
// lists the jobs that the worker holds and its unacknowledged results; the worker is registered, and receives jobs,
// only after this message. The argument most limits the total number of CPUs of all connected workers of its attempt;
// 0: any number.
func (d *Dispatcher) ServeWorker(c *wire.Conn, instance string, about corral.Worker, most int) {
	held, err := c.Recv(wire.MaxFrame)
	if err != nil || held.Type != wire.TypeHeld {
		return
	}
	s, err := d.register(c, instance, about, most, held)
	if err != nil {
		wire.Refuse(c, err)
		return
	}
	_ = c.Net.SetReadDeadline(time.Time{})
	d.lg.Info("worker registered", "worker", about.ID, "instance", instance, "host", about.Host, "cpus", about.CPUs,
		"held", len(held.Held), "results", len(held.Results))
	d.cfg.OnChange()
	if len(held.Results) > 0 {
		s.takeResults(held.Results)
	}
	for err == nil {
		err = s.serveOne()
	}
	if !errors.Is(err, io.EOF) {
		d.lg.Info("worker disconnected", "worker", about.ID, "error", err)
	}
	s.end()
	d.cfg.OnChange()
}

// A session is one connection of a member. Once the member has another connection, or none, messages on this one are
// ignored: the next held message reports the whole state.
type session struct {
	d    *Dispatcher
	m    *member
	conn *wire.Conn
}

// currentLocked reports whether the session is the member's current connection.
func (s *session) currentLocked() bool { return s.m.conn == s.conn }

// serveOne receives one message of a registered worker and handles it.
func (s *session) serveOne() error {
	msg, err := s.conn.Recv(wire.MaxFrame)
	if err != nil {
		return err
	}
	s.touch()
	switch msg.Type {
	case wire.TypeHeartbeat:
		s.conn.Send(&wire.Message{Type: wire.TypePong, N: msg.N})
	case wire.TypeResults:
		s.takeResults(msg.Results)
	case wire.TypeReturned:
		s.takeReturned(msg.Keys, wire.Clip(msg.Reason))
	case wire.TypeDraining:
		s.drained()
		s.d.cfg.OnChange()
	case wire.TypeBye:
		s.farewell(wire.Clip(msg.Reason))
		return io.EOF
	default:
		return fmt.Errorf("%w: a worker sent %s", wire.ErrProtocol, msg.Type)
	}
	return nil
}

// drained records that the worker accepts no more jobs.
func (s *session) drained() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.currentLocked() {
		s.m.drain(&s.d.matcher)
	}
}

// farewell records that a worker left in an orderly way: it has killed its running tasks and holds no jobs, so the jobs
// need not wait for its lease to end.
func (s *session) farewell(reason string) {
	d, m := s.d, s.m
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.currentLocked() {
		return
	}
	d.matcher.Close(&m.slot)
	d.members.drop(m)
	m.conn = nil
	back := &handBack{started: true, reason: "its worker left: " + reason}
	for key, e := range m.held {
		if e.sent { // the feed skips jobs whose results are on their way to the sink
			back.entries = append(back.entries, e)
			delete(m.held, key)
		}
	}
	back.tell(d.feeds)
	d.lg.Info("worker left", "worker", m.slot.ID, "reason", reason, "jobs", len(back.entries))
	d.matchLocked(time.Now())
}

// end records that a connection ended without a bye message. The worker may reconnect and continue while its lease
// lasts; until then it only gets no new jobs. If its attempt has ended, it will not reconnect.
func (s *session) end() {
	d, m := s.d, s.m
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.currentLocked() {
		return
	}
	m.conn, m.cutAt = nil, time.Now()
	d.matcher.Close(&m.slot)
	if m.ended && !d.closed {
		d.loseLocked(m, pilotEnded)
		d.matchLocked(m.cutAt)
	}
}

// touch records a sign of life.
func (s *session) touch() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.currentLocked() {
		s.m.seen(time.Now())
	}
}

// reconcileLocked compares the jobs that the worker reports with the jobs that were sent to it. The worker's report is
// authoritative. Jobs that it holds unexpectedly become strangers, which are cancelled at once unless a run may still
// claim them. Jobs that it lacks are handled by missingLocked. Finally the slot is filled with the worker's running and
// waiting jobs.
func (s *session) reconcileLocked(held *wire.Message, now time.Time) {
	m := s.m
	listed := map[execution.Key]bool{}
	var running, waiting []*matching.Job[*entry]
	known := m.strangers
	m.strangers = map[execution.Key]*entry{}
	for _, h := range held.Held {
		listed[h.Key] = true
		e := m.held[h.Key]
		if e == nil {
			e = known[h.Key]
			if e == nil {
				e = newEntry(h.Job(), nil)
				e.cancelled = !now.Before(s.d.claims)
			}
			m.strangers[h.Key] = e
		}
		e.recalled = false
		if h.Running {
			running = append(running, &e.match)
		} else {
			waiting = append(waiting, &e.match)
		}
	}
	for i := range held.Results {
		listed[held.Results[i].Key] = true
	}
	for key, e := range m.held {
		switch {
		case !e.sent: // its assignment is still being recorded, and will use this session
			waiting = append(waiting, &e.match)
		case !listed[key] && !e.complete(received):
			s.missingLocked(e)
		}
	}
	m.slot.Reset(now, running, waiting)
}

// missingLocked handles a job that was sent to the worker but that the worker does not hold. If this dispatcher has
// known the instance all along, the worker never received the job or had returned it. If only a predecessor of this
// dispatcher knew the instance, these two cases cannot be distinguished from the loss of a job.
func (s *session) missingLocked(e *entry) {
	d, m := s.d, s.m
	m.drop(e.job.Key())
	switch {
	case m.instance == "":
		(&handBack{entries: []*entry{e}, started: true, reason: "its worker came back without it"}).tell(d.feeds)
	case e.marks == nil && !e.cancelled:
		e.renew()
		d.matcher.Restore(&e.match)
	default:
		(&handBack{entries: []*entry{e}, reason: "its worker handed it back"}).tell(d.feeds)
	}
}
