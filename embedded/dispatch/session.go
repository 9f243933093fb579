package dispatch

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// ServeWorker serves an instance of an admitted worker until its connection ends. The caller closes c. The first
// message says what the worker holds, and which results it has not heard of; only after that is it registered and given
// jobs. The connected workers of its attempt may have most cpus together; 0: any number.
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

// A session is one connection of a member. Once the member has another, or none, what still comes over this one is
// left out of account: the next held message tells it all.
type session struct {
	d    *Dispatcher
	m    *member
	conn *wire.Conn
}

// currentLocked reports whether the member is still connected by this session.
func (s *session) currentLocked() bool { return s.m.conn == s.conn }

// serveOne receives one message of a registered worker and does what it says.
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

// drained books that the worker takes nothing more.
func (s *session) drained() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.currentLocked() {
		s.m.drain(&s.d.matcher)
	}
}

// farewell books that a worker left in good order: it has killed what ran and holds nothing any more, so its jobs need
// not wait for its lease to end.
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
		if e.sent { // those whose results are on their way to the sink are left out there
			back.entries = append(back.entries, e)
			delete(m.held, key)
		}
	}
	back.tell(d.feeds)
	d.lg.Info("worker left", "worker", m.slot.ID, "reason", reason, "jobs", len(back.entries))
	d.matchLocked(time.Now())
}

// end books the end of a connection without farewell. The worker may come back and go on, for as long as its lease
// lasts; until then it only gets no new jobs. If its attempt is over, it will not.
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

// touch notes a sign of life.
func (s *session) touch() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.currentLocked() {
		s.m.seen(time.Now())
	}
}

// reconcileLocked compares what the worker says it has with what it was sent. The worker is right. Jobs that it has and
// is not known to have become strangers, cancelled at once unless a run may still claim them. Jobs that it lacks are
// judged by missingLocked. In the end its slot is filled with what runs and what waits there.
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
		case !e.sent: // its assignment is still being recorded, and finds this session
			waiting = append(waiting, &e.match)
		case !listed[key] && !e.complete(received):
			s.missingLocked(e)
		}
	}
	m.slot.Reset(now, running, waiting)
}

// missingLocked books a job that the worker was sent and does not have. An instance that was there all the time
// never got it, or had handed it back; of one that a predecessor of this dispatcher knew, that cannot
// be told.
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
