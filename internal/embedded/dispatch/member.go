package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// A member is one instance of a worker, or a placeholder for a worker that is expected back; instance is empty in a
// placeholder. The dispatcher's lock guards all fields.
//
// The worker's own report of its jobs is authoritative; held is the dispatcher's view. Each connection begins with a
// comparison of the two (reconcileLocked). strangers occupy the slot like other jobs, because they use the worker's
// CPUs. They move to held when a run claims them (Expect), or are killed if no run does in time.
type member struct {
	instance string
	retired  []string      // earlier instances with this id, which are rejected
	about    corral.Worker // description of the worker; worker() fills in the fields that depend on slot and conn
	conn     *wire.Conn    // nil while it is not connected
	cutAt    time.Time     // when the last connection ended without a bye message
	ended    bool          // all processes of its attempt have ended

	slot      matching.Slot[*entry]    // its id is the worker's id
	held      map[execution.Key]*entry // jobs that it holds or is about to get
	strangers map[execution.Key]*entry // jobs that it holds and that no run has claimed (yet)
}

func newMember(id string) *member {
	return &member{
		slot: matching.Slot[*entry]{ID: id},
		held: map[execution.Key]*entry{}, strangers: map[execution.Key]*entry{},
	}
}

// send sends a message if the worker is connected.
func (m *member) send(msg *wire.Message) {
	if m.conn != nil {
		m.conn.Send(msg)
	}
}

// take records a job that the worker holds or is about to get.
func (m *member) take(e *entry) { m.held[e.job.Key()] = e }

// drop forgets a job that the worker no longer holds or never received.
func (m *member) drop(key execution.Key) { delete(m.held, key) }

// dropStranger forgets an unclaimed job that the worker no longer holds.
func (m *member) dropStranger(key execution.Key) { delete(m.strangers, key) }

// seen records when the worker last showed a sign of life.
func (m *member) seen(at time.Time) { m.about.SeenAt = at }

// drain permanently stops the assignment of new jobs to the worker.
func (m *member) drain(of *matching.Matcher[*entry]) {
	m.about.Draining = true
	of.Close(&m.slot)
}

// hangUp closes the connection; the goroutine that reads it cleans up.
func (m *member) hangUp() {
	if m.conn != nil {
		_ = m.conn.Net.Close()
		m.conn = nil
	}
}

// sendCancels tells the worker which of its jobs to kill. Repeating it is harmless.
func (m *member) sendCancels() {
	var keys []execution.Key
	for key, e := range m.held {
		if e.cancelled && e.sent {
			keys = append(keys, key)
		}
	}
	for key, e := range m.strangers {
		if e.cancelled {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		m.send(&wire.Message{Type: wire.TypeCancel, Keys: keys})
	}
}

// disown makes the worker kill the jobs of a run that no longer has a sink. The jobs stay on its slot as strangers
// until the worker reports that they have ended, because their processes may still run.
func (m *member) disown(run corral.RunID, now time.Time) {
	for key, e := range m.held {
		if key.Run != run {
			continue
		}
		delete(m.held, key)
		e.cancelled = true
		if e.sent && !e.complete(received) {
			m.strangers[key] = e
		} else {
			m.slot.Release(&e.match, now)
		}
	}
	m.sendCancels()
}

// lastSeen returns the last time at which the worker was certainly alive. The end of a connection counts as a sign of
// life, because the usual reason for it is the worker's exit.
func (m *member) lastSeen() time.Time {
	if m.conn == nil && m.cutAt.After(m.about.SeenAt) {
		return m.cutAt
	}
	return m.about.SeenAt
}

func (m *member) worker() corral.Worker {
	running := 0
	for _, e := range m.slot.Running() {
		if m.held[e.job.Key()] == e {
			running++ // a clustered job runs one task at a time
		}
	}
	w := m.about
	w.RunningTasks, w.Connected = running, m.conn != nil
	w.SetFree(m.slot.Free())
	w.RegisteredAt, w.SeenAt, w.EndsAt = w.RegisteredAt.UTC(), w.SeenAt.UTC(), w.EndsAt.UTC()
	return w
}

// register makes a worker instance a member, connected through c, with the jobs that it reported. If the id is known
// with another instance, the worker was restarted: the jobs of the earlier instance are lost. If the earlier instance
// connects again, it is rejected, because otherwise two workers with one id would get the same jobs.
func (d *Dispatcher) register(
	c *wire.Conn, instance string, about corral.Worker, most int, held *wire.Message,
) (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, corral.Errorf(corral.Unavailable, "the dispatcher is closing")
	}
	have := d.members.besides(about) // may include a worker that has ended but is still connected
	if most > 0 && have+about.CPUs > most {
		return nil, corral.Errorf(corral.Unavailable,
			"worker %s offers %d cpus, and other workers have %d of the %d of its attempt",
			about.ID, about.CPUs, have, most)
	}
	now := time.Now()
	m := d.members.get(about.ID)
	switch {
	case m == nil:
		m = d.members.add(about.ID)
	case slices.Contains(m.retired, instance):
		return nil, corral.Errorf(corral.Conflict,
			"worker %s was started again since; this instance must end", about.ID)
	case m.instance != "" && m.instance != instance:
		d.loseLocked(m, "its worker was started again")
		old := m
		m = d.members.add(about.ID)
		m.retired = append(old.retired, old.instance)
	}
	m.hangUp()
	d.matcher.Close(&m.slot)
	about.RegisteredAt, about.SeenAt = m.about.RegisteredAt, now
	about.Draining, about.DoneTasks = m.about.Draining, m.about.DoneTasks
	if about.RegisteredAt.IsZero() {
		about.RegisteredAt = now
	}
	m.about, m.conn = about, c
	m.slot.Host, m.slot.EndsAt, m.slot.Speed = about.Resources(), about.EndsAt, about.Speed
	s := &session{d, m, c}
	s.reconcileLocked(held, now)
	m.instance = instance
	delete(d.missing, about.ID)
	if ask := d.cfg.Asked(m.about.Attempt); ask != corral.AskNothing {
		m.about.Draining = true
		m.send(wire.AskMessage(ask))
	}
	m.sendCancels()
	if !m.about.Draining {
		d.matcher.Open(&m.slot)
	}
	d.matchLocked(now, &m.slot)
	return s, nil
}

// loseLocked gives up a worker: the jobs sent to it are returned to their sinks as started. Jobs booked for the worker
// but not sent yet are still held by their feed, which finds that the worker is missing and queues them again.
func (d *Dispatcher) loseLocked(m *member, reason string) {
	d.matcher.Close(&m.slot)
	d.members.drop(m)
	m.hangUp()
	back := &handBack{started: true, until: m.lastSeen(), reason: reason}
	for key, e := range m.held {
		if e.sent { // otherwise its assignment finds the worker missing
			back.entries = append(back.entries, e)
			m.drop(key)
		}
	}
	back.tell(d.feeds)
	if m.instance != "" {
		d.lg.Warn("worker lost",
			"worker", m.slot.ID, "instance", m.instance, "jobs", len(back.entries), "reason", reason)
	}
}

// Expect records that jobs had been assigned to a worker before corrald was restarted. Jobs that the worker still holds
// continue, or are killed if they were cancelled earlier. The other jobs are Returned as started: at once if the worker
// is connected and does not hold them, or after lease and margin if it does not reconnect.
func (d *Dispatcher) Expect(run corral.RunID, worker string, jobs []execution.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.feeds[run]
	if d.closed || f == nil {
		return
	}
	m := d.members.get(worker)
	if m == nil {
		m = d.members.add(worker)
		m.seen(time.Now())
		if tag, _, _ := strings.Cut(worker, "/"); d.ended[tag] {
			defer d.loseLocked(m, pilotEnded)
		}
	}
	missing := &handBack{started: true, reason: "its worker came back without it"}
	for i := range jobs {
		key := jobs[i].Key()
		e := m.strangers[key]
		switch {
		case e != nil: // already on the slot, with the needs that the worker reported
			e.describe(jobs[i], f.jobs)
			m.dropStranger(key)
		case m.instance == "":
			e = newEntry(jobs[i], f.jobs)
		default:
			missing.entries = append(missing.entries, newEntry(jobs[i], f.jobs))
			continue
		}
		e.sent = true
		m.take(e)
	}
	missing.tell(d.feeds)
}
