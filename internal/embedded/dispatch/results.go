package dispatch

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// takeResults passes the results that a worker sent on to be recorded, and assigns more jobs to the worker. All results
// in one message are passed to each run's feed as one batch. Results that no longer belong to a job are acknowledged at
// once, because the worker would otherwise send them repeatedly until it ends.
func (s *session) takeResults(reports []wire.Report) {
	d, m := s.d, s.m
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.currentLocked() || d.closed {
		return
	}
	now := time.Now()
	byFeed := map[*feed]*batch{}
	var drop []int64
	for i := range reports {
		r := &reports[i]
		r.Worker = m.slot.ID // overrides the worker's own value
		e, ok := s.settleLocked(r, now)
		f := d.feeds[r.Key.Run]
		switch {
		case e != nil && f != nil:
			b := byFeed[f]
			if b == nil {
				b = &batch{from: m}
				byFeed[f] = b
			}
			b.reports = append(b.reports, *r)
			b.entries = append(b.entries, e)
		case ok:
			drop = append(drop, r.N)
		}
	}
	for f, b := range byFeed {
		f.tell(event{finished: []batch{*b}})
	}
	if len(drop) > 0 {
		s.conn.Send(&wire.Message{Type: wire.TypeAck, Numbers: drop})
	}
	d.matchLocked(now, &m.slot)
}

// settleLocked records one result. It returns the entry of its job. If there is none, drop reports whether the worker
// should delete the result; it should not if a run may still claim the job after a restart of corrald.
func (s *session) settleLocked(r *wire.Report, now time.Time) (e *entry, drop bool) {
	d, m := s.d, s.m
	if e = m.held[r.Key]; e == nil {
		return nil, s.settleStranger(r, now)
	}
	if !e.mark(r.Index, received) {
		d.lg.Warn("result of a task that its job does not have",
			"worker", m.slot.ID, "run", r.Key.Run, "seq", r.Key.Seq)
		return nil, true
	}
	if f := d.feeds[r.Key.Run]; f != nil && (r.Status == execution.Done || r.Status == execution.Failed) {
		f.jobs.Observe(r.EndedAt.Sub(r.StartedAt), e.taskEstimate(r.Index), m.slot.Speed)
	}
	if e.complete(received) {
		m.slot.Release(&e.match, now)
	}
	return e, false
}

// settleStranger records a result of a job that the worker is not known to hold, and reports whether the worker should
// delete the result. Shortly after a restart the run of such a job may still claim it, so the worker keeps the result
// and sends it again. Later the result is stale: the job was returned and is executed elsewhere.
func (s *session) settleStranger(r *wire.Report, now time.Time) bool {
	d, m := s.d, s.m
	e := m.strangers[r.Key]
	if e == nil && now.Before(d.claims) {
		m.strangers[r.Key] = newEntry(execution.Job{Run: r.Key.Run, Seq: r.Key.Seq}, nil)
		return false
	}
	if e != nil && !e.cancelled {
		return false
	}
	if e != nil && (!e.mark(r.Index, received) || e.complete(received)) {
		m.slot.Release(&e.match, now)
		m.dropStranger(r.Key)
	}
	d.lg.Info("dropped a result of a job that was given back", "worker", m.slot.ID, "run", r.Key.Run,
		"seq", r.Key.Seq, "task", r.Index, "attempt", r.Attempt, "status", r.Status)
	return true
}

// taskEstimate returns the estimated runtime of the task with this index.
func (e *entry) taskEstimate(index int) time.Duration {
	for i := range e.job.Tasks {
		if e.job.Tasks[i].Index == index {
			return e.job.Tasks[i].Estimate
		}
	}
	return 0
}

// takeReturned records jobs that a worker returns. Recalled jobs of which no task has run are queued again in their old
// places, perhaps for another worker; the others are returned to their sinks.
func (s *session) takeReturned(keys []execution.Key, reason string) {
	d, m := s.d, s.m
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.currentLocked() || d.closed {
		return
	}
	now := time.Now()
	back := &handBack{reason: reason}
	for _, key := range keys {
		if e := m.strangers[key]; e != nil {
			m.slot.Release(&e.match, now)
			m.dropStranger(key)
		}
		e := m.held[key]
		if e == nil {
			continue
		}
		m.drop(key)
		m.slot.Release(&e.match, now)
		if e.recalled && !e.cancelled && e.marks == nil && d.feeds[key.Run] != nil {
			e.renew()
			d.matcher.Restore(&e.match)
		} else {
			back.entries = append(back.entries, e)
		}
	}
	back.tell(d.feeds)
	d.matchLocked(now)
}
