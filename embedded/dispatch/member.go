package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A member is one instance of a worker, or the place of one that is expected back (then instance is empty). The
// dispatcher's lock guards it.
//
// The worker's own word about what it has is the truth; held is what the dispatcher believes. Each connection begins
// with a comparison of the two (reconcileLocked). strangers are on the slot like the others, because they use the
// worker's cpus; they become held when a run claims them (Expect), or are killed when none does in time.
type member struct {
	instance string
	retired  []string      // earlier instances with this id, which must not come back
	about    corral.Worker // what is told of it; what slot and conn know is filled in when it is
	conn     *wire.Conn    // nil while it is not connected
	cutAt    time.Time     // when the last connection ended without farewell
	ended    bool          // nothing of its attempt runs any more

	slot      matching.Slot[*entry]    // its id is the worker's
	held      map[execution.Key]*entry // jobs that it has or is about to get
	strangers map[execution.Key]*entry // jobs that it has and no run claims (yet)
}

func newMember(id string) *member {
	return &member{
		slot: matching.Slot[*entry]{ID: id},
		held: map[execution.Key]*entry{}, strangers: map[execution.Key]*entry{},
	}
}

// send sends to the worker if it is connected.
func (m *member) send(msg *wire.Message) {
	if m.conn != nil {
		m.conn.Send(msg)
	}
}

// take makes a job one that the worker has or is about to get.
func (m *member) take(e *entry) { m.held[e.job.Key()] = e }

// drop forgets a job that the worker has no more, or never got.
func (m *member) drop(key execution.Key) { delete(m.held, key) }

// dropStranger forgets a job that no run claimed and that the worker has no more.
func (m *member) dropStranger(key execution.Key) { delete(m.strangers, key) }

// seen sets when the worker last gave a sign of life.
func (m *member) seen(at time.Time) { m.about.SeenAt = at }

// drain keeps new jobs from the worker, for good.
func (m *member) drain(of *matching.Matcher[*entry]) {
	m.about.Draining = true
	of.Close(&m.slot)
}

// hangUp ends the connection; its reading goroutine cleans up after it.
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

// disown has the worker kill the jobs of a run that has no sink any more. Until it says that they are gone they stay on
// its slot as strangers, since their processes may still run.
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

// lastSeen is when the worker was there for certain: its processes end its connection, unless that has broken.
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
			running++ // of a clustered job one task runs at a time
		}
	}
	w := m.about
	w.RunningTasks, w.Connected = running, m.conn != nil
	w.SetFree(m.slot.Free())
	w.RegisteredAt, w.SeenAt, w.EndsAt = w.RegisteredAt.UTC(), w.SeenAt.UTC(), w.EndsAt.UTC()
	return w
}

// register makes an instance of a worker a member, connected through c, with what it said it holds. An id that comes
// with another instance is a worker that was started again: what the earlier instance had is lost, and if that comes
// back, it is turned away, or two workers of one id would get the same jobs.
func (d *Dispatcher) register(
	c *wire.Conn, instance string, about corral.Worker, most int, held *wire.Message,
) (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, corral.Errorf(corral.Unavailable, "the dispatcher is closing")
	}
	have := d.members.besides(about) // among them may be one that has ended and is still connected
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
	m.slot.Host, m.slot.EndsAt = about.Resources(), about.EndsAt
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

// loseLocked gives up a worker: what it was sent goes back to the sinks as started. What was booked for it and not sent
// yet is still with its feed, which finds the worker gone and queues it again.
func (d *Dispatcher) loseLocked(m *member, reason string) {
	d.matcher.Close(&m.slot)
	d.members.drop(m)
	m.hangUp()
	back := &handBack{started: true, until: m.lastSeen(), reason: reason}
	for key, e := range m.held {
		if e.sent { // else its assignment finds the worker gone
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

// Expect says that, before corrald was started again, jobs had been assigned to a worker. Those that
// it still has go on, or are killed if that was decided before. The others are Returned as started: at
// once if the worker is here without them, after lease and margin if it does not come back.
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
		case e != nil: // on the slot already, with the needs that the worker told
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
