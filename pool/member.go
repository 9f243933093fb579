package pool

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/matching"
)

// A session is one connection of an admitted worker or pilot.
type session struct {
	*conn
	attempt corral.JobID
	hosts   int       // of the attempt
	began   time.Time // when its hello came
}

// A member is one instance of a worker, or the place of one that is expected back (then instance is
// empty). The dispatcher's lock guards it.
type member struct {
	instance string
	retired  []string // earlier instances with this id, which must not come back

	attempt      corral.JobID
	glidein      corral.GlideinID
	cluster      corral.ClusterID
	host         string
	pid          int
	registeredAt time.Time

	session  *session // nil while it is not connected
	seen     time.Time
	draining bool
	done     int // tasks

	slot      matching.Slot[*entry]    // its id is the worker's
	held      map[execution.Key]*entry // jobs that it has or is about to get
	strangers map[execution.Key]*entry // jobs that it has and nobody claims (yet)
}

func newMember(id string) *member {
	return &member{
		slot: matching.Slot[*entry]{ID: id},
		held: map[execution.Key]*entry{}, strangers: map[execution.Key]*entry{},
	}
}

// send sends to the worker if it is connected.
func (m *member) send(msg *message) {
	if m.session != nil {
		m.session.send(msg)
	}
}

// drainLocked keeps new jobs from the worker, for good.
func (d *Dispatcher) drainLocked(m *member) {
	m.draining = true
	d.matcher.Close(&m.slot)
}

// hangUp ends the connection; its reading goroutine cleans up after it.
func (m *member) hangUp() {
	if m.session != nil {
		_ = m.session.nc.Close()
		m.session = nil
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
		m.send(&message{Type: typeCancel, Keys: keys})
	}
}

func (m *member) worker() corral.Worker {
	running := 0
	for _, e := range m.slot.Running() {
		if m.held[e.job.Key()] == e {
			running++ // of a clustered job one task runs at a time
		}
	}
	return corral.Worker{
		ID: m.slot.ID, Cluster: m.cluster, Glidein: m.glidein, Attempt: m.attempt,
		Host: m.host, PID: m.pid,
		CPUs: m.slot.CPUs, CPUsFree: m.slot.FreeCPUs(), MemoryMiB: m.slot.MemoryMiB,
		Draining: m.draining, Connected: m.session != nil,
		RunningTasks: running, DoneTasks: m.done,
		RegisteredAt: m.registeredAt.UTC(), SeenAt: m.seen.UTC(), EndsAt: m.slot.EndsAt.UTC(),
	}
}

// register makes h's worker a member, connected through s, with what it said it holds.
func (d *Dispatcher) register(s *session, h *hello, adm Admission, held *message) (*member, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, corral.Errorf(corral.Unavailable, "the dispatcher is closing")
	}
	now := time.Now()
	m := d.member(h.ID)
	switch {
	case m == nil:
		m = newMember(h.ID)
		d.insertLocked(m)
	case slices.Contains(m.retired, h.Instance):
		return nil, corral.Errorf(corral.Conflict, "worker %s was started anew since; this instance must end", h.ID)
	case m.instance != "" && m.instance != h.Instance:
		d.loseLocked(m, "its worker was started anew")
		old := m
		m = newMember(h.ID)
		m.retired = append(old.retired, old.instance)
		d.insertLocked(m)
	}
	m.hangUp()
	d.matcher.Close(&m.slot)
	m.attempt, m.glidein, m.cluster = adm.Attempt, adm.Glidein, adm.Cluster
	m.host, m.pid, m.session, m.seen = h.Host, h.PID, s, now
	m.slot.CPUs, m.slot.MemoryMiB = h.CPUs, h.MemoryMiB
	m.slot.EndsAt = s.began.Add(time.Duration(h.LeftMS) * time.Millisecond)
	if m.registeredAt.IsZero() {
		m.registeredAt = now
	}
	d.reconcileLocked(m, held, now)
	m.instance = h.Instance
	if ask := d.asked[m.attempt]; ask != corral.AskNothing {
		m.draining = true
		m.send(askMessage(ask))
	}
	m.sendCancels()
	if !m.draining {
		d.matcher.Open(&m.slot)
	}
	d.matchLocked(now, &m.slot)
	return m, nil
}

// reconcileLocked compares what the worker says it has with what it was sent. The worker is right.
func (d *Dispatcher) reconcileLocked(m *member, held *message, now time.Time) {
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
				e = newEntry(execution.Job{Run: h.Key.Run, Seq: h.Key.Seq, CPUs: h.CPUs, MemoryMiB: h.MemoryMiB}, nil)
				e.cancelled = !now.Before(d.claims)
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
			d.missingLocked(m, e)
		}
	}
	m.slot.Reset(now, running, waiting)
}

// missingLocked books a job that m was sent and does not have. An instance that was there all the time
// never got it, or had handed it back; of one that a predecessor of this dispatcher knew, that cannot
// be told.
func (d *Dispatcher) missingLocked(m *member, e *entry) {
	delete(m.held, e.job.Key())
	switch {
	case m.instance == "":
		d.returnLocked(&handBack{entries: []*entry{e}, started: true, reason: "its worker came back without it"})
	case e.marks == nil && !e.cancelled:
		e.renew()
		d.matcher.Restore(&e.match)
	default:
		d.returnLocked(&handBack{entries: []*entry{e}, reason: "its worker handed it back"})
	}
}

// loseLocked gives up a worker: what it was sent goes back to the sinks.
func (d *Dispatcher) loseLocked(m *member, reason string) {
	d.dropLocked(m)
	m.hangUp()
	back := &handBack{started: true, reason: reason}
	for key, e := range m.held {
		if e.sent { // else its assignment finds the worker gone
			back.entries = append(back.entries, e)
			delete(m.held, key)
		}
	}
	d.returnLocked(back)
	if m.instance != "" {
		d.stats.Lost++
		d.lg.Warn("worker lost",
			"worker", m.slot.ID, "instance", m.instance, "jobs", len(back.entries), "reason", reason)
	}
}

// disownLocked has m kill the jobs of a run that is nobody's any more.
func (d *Dispatcher) disownLocked(m *member, run corral.RunID) {
	now := time.Now()
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
	m := d.member(worker)
	if m == nil {
		m = newMember(worker)
		m.seen = time.Now()
		d.insertLocked(m)
	}
	missing := &handBack{started: true, reason: "its worker came back without it"}
	for i := range jobs {
		key := jobs[i].Key()
		e := m.strangers[key]
		switch {
		case e != nil: // on the slot already, with the needs that the worker told
			e.describe(jobs[i], f.jobs)
			delete(m.strangers, key)
		case m.instance == "":
			e = newEntry(jobs[i], f.jobs)
		default:
			missing.entries = append(missing.entries, newEntry(jobs[i], f.jobs))
			continue
		}
		e.sent = true
		m.held[key] = e
	}
	d.returnLocked(missing)
}
