package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
)

// terms returns the welcome of a dispatcher.
func (d *Dispatcher) terms() *message {
	return &message{Type: typeWelcome, Welcome: &welcome{
		Now: time.Now().UTC(), LeaseMS: d.cfg.Lease.Milliseconds(), HeartbeatMS: d.cfg.Heartbeat.Milliseconds(),
	}}
}

// serveWorker serves an admitted worker until its connection ends. The caller closes s.
func (d *Dispatcher) serveWorker(s *session, h *hello, adm Admission) {
	held, err := s.recv(maxFrame)
	if err != nil || held.Type != typeHeld {
		return
	}
	m, err := d.register(s, h, adm, held)
	if err != nil {
		refuse(s.conn, err)
		return
	}
	_ = s.nc.SetReadDeadline(time.Time{})
	d.lg.Info("worker registered", "worker", m.slot.ID, "instance", h.Instance, "host", h.Host, "cpus", h.CPUs,
		"held", len(held.Held), "results", len(held.Results))
	d.cfg.OnChange()
	if len(held.Results) > 0 {
		d.takeResults(m, s, held.Results)
	}
	for err == nil {
		err = d.serveOne(m, s)
	}
	if !errors.Is(err, io.EOF) {
		d.lg.Info("worker disconnected", "worker", m.slot.ID, "err", err)
	}
	d.disconnected(m, s)
	d.cfg.OnChange()
}

// serveOne receives one message of a registered worker and does what it says.
func (d *Dispatcher) serveOne(m *member, s *session) error {
	msg, err := s.recv(maxFrame)
	if err != nil {
		return err
	}
	d.touch(m, s)
	switch msg.Type {
	case typeHeartbeat:
		s.send(&message{Type: typePong, N: msg.N})
	case typeResults:
		d.takeResults(m, s, msg.Results)
	case typeReturned:
		d.takeReturned(m, s, msg.Keys, clip(msg.Reason))
	case typeDraining:
		d.drained(m, s)
		d.cfg.OnChange()
	case typeBye:
		d.farewell(m, s, clip(msg.Reason))
		return io.EOF
	default:
		return fmt.Errorf("%w: a worker sent %s", errProtocol, msg.Type)
	}
	return nil
}

// drained books that the worker takes nothing more.
func (d *Dispatcher) drained(m *member, s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.session == s {
		d.drainLocked(m)
	}
}

// farewell books that a worker left in good order.
func (d *Dispatcher) farewell(m *member, s *session, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.session != s {
		return
	}
	d.dropLocked(m)
	m.session = nil
	back := &handBack{started: true, reason: "its worker left: " + reason}
	for key, e := range m.held {
		if e.sent { // those whose results are on their way to the sink are left out there
			back.entries = append(back.entries, e)
			delete(m.held, key)
		}
	}
	d.returnLocked(back)
	d.lg.Info("worker left", "worker", m.slot.ID, "reason", reason, "jobs", len(back.entries))
	d.matchLocked(time.Now())
}

// disconnected books the end of a connection without farewell: the worker may come back.
func (d *Dispatcher) disconnected(m *member, s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.session == s {
		m.session = nil
		d.matcher.Close(&m.slot)
	}
}

// servePilot serves an admitted pilot until its connection ends. The caller closes s.
func (p *Port) servePilot(ctx context.Context, s *session, d *Dispatcher) {
	d.link(s)
	defer d.unlink(s)
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for {
		msg, err := s.recv(maxHello)
		if err != nil {
			return
		}
		switch msg.Type {
		case typeHeartbeat:
			s.send(&message{Type: typePong, N: msg.N})
		case typeReport, typeLost:
			s.send(p.report(ctx, s.attempt, msg))
		case typeCallBack:
			calls.Go(func() { s.send(p.callBack(ctx, s, msg)) })
		case typeBye:
			return
		default:
			p.lg.Info("pilot disconnected", "attempt", s.attempt, "sent", msg.Type)
			return
		}
	}
}

// report records a pilot's report and returns the answer.
func (p *Port) report(ctx context.Context, attempt corral.JobID, m *message) *message {
	answer := &message{Type: typeReported, N: m.N}
	ctx, cancel := context.WithTimeout(ctx, admitTimeout)
	defer cancel()
	var err error
	if m.Type == typeLost {
		err = p.gate.LoseHost(ctx, attempt, *m.Lost)
	} else {
		err = p.gate.Report(ctx, attempt, m.Phase, clip(m.Reason))
	}
	if err != nil {
		p.lg.Error("recording a pilot's report", "attempt", attempt, "phase", m.Phase, "err", err)
		answer.Kind, answer.Reason = corral.KindOf(err), clip(err.Error())
	}
	return answer
}

// link makes a pilot's connection known, and tells it what was asked of its attempt before.
func (d *Dispatcher) link(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = s.nc.Close()
		return
	}
	d.links[s] = true
	if ask := d.asked[s.attempt]; ask != corral.AskNothing {
		s.send(askMessage(ask))
	}
}

func (d *Dispatcher) unlink(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.links, s)
}
