package dispatch

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
)

// ServeWorker serves an instance of an admitted worker until its connection ends. The caller closes c.
func (d *Dispatcher) ServeWorker(c *wire.Conn, instance string, about corral.Worker) {
	held, err := c.Recv(wire.MaxFrame)
	if err != nil || held.Type != wire.TypeHeld {
		return
	}
	m, err := d.register(c, instance, about, held)
	if err != nil {
		wire.Refuse(c, err)
		return
	}
	_ = c.Net.SetReadDeadline(time.Time{})
	d.lg.Info("worker registered", "worker", m.slot.ID, "instance", instance, "host", about.Host, "cpus", about.CPUs,
		"held", len(held.Held), "results", len(held.Results))
	d.cfg.OnChange()
	if len(held.Results) > 0 {
		d.takeResults(m, c, held.Results)
	}
	for err == nil {
		err = d.serveOne(m, c)
	}
	if !errors.Is(err, io.EOF) {
		d.lg.Info("worker disconnected", "worker", m.slot.ID, "error", err)
	}
	d.disconnected(m, c)
	d.cfg.OnChange()
}

// serveOne receives one message of a registered worker and does what it says.
func (d *Dispatcher) serveOne(m *member, c *wire.Conn) error {
	msg, err := c.Recv(wire.MaxFrame)
	if err != nil {
		return err
	}
	d.touch(m, c)
	switch msg.Type {
	case wire.TypeHeartbeat:
		c.Send(&wire.Message{Type: wire.TypePong, N: msg.N})
	case wire.TypeResults:
		d.takeResults(m, c, msg.Results)
	case wire.TypeReturned:
		d.takeReturned(m, c, msg.Keys, wire.Clip(msg.Reason))
	case wire.TypeDraining:
		d.drained(m, c)
		d.cfg.OnChange()
	case wire.TypeBye:
		d.farewell(m, c, wire.Clip(msg.Reason))
		return io.EOF
	default:
		return fmt.Errorf("%w: a worker sent %s", wire.ErrProtocol, msg.Type)
	}
	return nil
}

// drained books that the worker takes nothing more.
func (d *Dispatcher) drained(m *member, c *wire.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.conn == c {
		d.drainLocked(m)
	}
}

// farewell books that a worker left in good order.
func (d *Dispatcher) farewell(m *member, c *wire.Conn, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.conn != c {
		return
	}
	d.dropLocked(m)
	m.conn = nil
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
func (d *Dispatcher) disconnected(m *member, c *wire.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.conn == c {
		m.conn = nil
		d.matcher.Close(&m.slot)
	}
}
