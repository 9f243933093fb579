package matching

import (
	"iter"
	"slices"
	"time"
)

// overtakenLong is the time for which later jobs may start before a big job. A slot that is kept free wastes cpus, and
// most overtaken jobs find room within seconds without such a slot; ten seconds are negligible for a job that is worth
// waiting in a batch queue.
const overtakenLong = 10 * time.Second

// A Matcher assigns queued jobs to the slots of one personal cluster. The zero value has no jobs, no slots and no
// margin.
type Matcher[T any] struct {
	StartMargin time.Duration // time that a slot needs beyond a job's estimate, to start a process

	queue    queue[T]
	arrived  int64      // number of jobs pushed
	opened   int64      // number of slots opened
	cpus     int        // total of the open slots
	root     *node[T]   // the tree of the open slots that may take jobs, as of the latest arrange
	moved    []*Slot[T] // slots that have changed since
	restless int        // number of restless open slots, as of the latest arrange
	settled  bool       // all slots have been tried since the latest change, and none took a job
}

// Queued returns the number of jobs that are not in a slot.
func (m *Matcher[T]) Queued() int { return m.queue.size }

// Push queues a new job behind the queued jobs of the same priority.
func (m *Matcher[T]) Push(j *Job[T]) {
	m.arrived++
	j.arrived = m.arrived
	m.Restore(j)
}

// Restore queues a job again at its old position.
func (m *Matcher[T]) Restore(j *Job[T]) {
	m.queue.add(j)
	m.settled = false
}

// Remove removes the queued jobs of a run from the queue, and returns them in no particular order.
func (m *Matcher[T]) Remove(run *Run[T]) []T {
	return m.RemoveFunc(run, func(T) bool { return true })
}

// RemoveFunc removes from the queue those jobs of a run for which which returns true, and returns them in no particular
// order.
func (m *Matcher[T]) RemoveFunc(run *Run[T], which func(T) bool) []T {
	var gone []T
	for k := len(run.queued) - 1; k >= 0; k-- {
		if j := run.queued[k]; which(j.Value) { // the job that replaces it was behind it and has already been checked
			m.queue.remove(j)
			m.settled = false
			gone = append(gone, j.Value)
		}
	}
	return gone
}

// Open allows a slot to take jobs from now on.
func (m *Matcher[T]) Open(s *Slot[T]) {
	if s.in != nil {
		return
	}
	m.opened++
	m.cpus += s.Host.CPUs
	m.settled = false
	s.in, s.opened, s.stale = m, m.opened, true
	if s.node == nil {
		s.node = &node[T]{slot: s, weight: uint32(m.opened) * 0x9e3779b1} // Knuth's multiplicative hash
	}
	s.move()
}

// Close prevents a slot from taking new jobs, and stops keeping the slot free for a job. Jobs on the slot remain there
// until they are released.
func (m *Matcher[T]) Close(s *Slot[T]) {
	if s.in == nil {
		return
	}
	m.cpus -= s.Host.CPUs
	m.settled = false
	s.unkeep()
	s.move()
	s.in = nil
	m.arrange()
}

// arrange updates the tree and the counts for the slots that have changed.
func (m *Matcher[T]) arrange() {
	for _, s := range m.moved {
		s.moved = false
		now, n := s.standing(), s.node
		if now == n.was {
			continue
		}
		if n.was.listed {
			m.root = m.root.delete(n)
		}
		m.restless += count(now.restless) - count(n.was.restless)
		if n.was = now; now.listed {
			m.root = m.root.insert(n)
		}
	}
	clear(m.moved)
	m.moved = m.moved[:0]
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ChangesAt returns the earliest instant, from now on, at which a further round of Match, or Overdue of an open slot,
// may have a result although nothing but time has changed; ok is false if none exists. A dispatcher in real time checks
// all slots periodically; a simulator in virtual time, where needless checks would dominate the cost, checks at the
// first of its periods after that instant.
func (m *Matcher[T]) ChangesAt(now time.Time) (at time.Time, ok bool) {
	m.arrange()
	switch {
	case !m.settled && m.queue.size > 0 && m.restless > 0:
		return now, true
	case m.root == nil || m.root.changes.IsZero():
		return time.Time{}, false
	case m.root.changes.Before(now):
		return now, true
	}
	return m.root.changes, true
}

// Match assigns queued jobs to the given slots, or to all slots if none is given; closed slots are skipped. It yields
// each slot that takes any jobs, with its new jobs in the order in which they must reach the worker. The jobs are
// already booked on the slot at that time. Slots must not be opened or closed while the loop runs.
func (m *Matcher[T]) Match(now time.Time, only ...*Slot[T]) iter.Seq2[*Slot[T], []T] {
	if len(only) == 0 {
		return func(yield func(*Slot[T], []T) bool) { m.matchAll(now, yield) }
	}
	if len(only) > 1 {
		only = slices.SortedFunc(slices.Values(only), func(a, b *Slot[T]) int {
			p, q := a.standing().at, b.standing().at
			return p.compare(&q)
		})
	}
	return func(yield func(*Slot[T], []T) bool) {
		m.settled = false
		share := m.share()
		for _, s := range only {
			if m.queue.size == 0 {
				return
			}
			if s.in == nil {
				continue
			}
			if taken := m.fill(s, now, share); len(taken) > 0 && !yield(s, taken) {
				return
			}
		}
	}
}

// matchAll fills all slots. Once a slot has been filled, no queued job fits it until the slot changes or another job is
// queued, unless it is apart. So it visits only the slots that have changed or are apart, and those with room for new
// jobs; if none fits a slot, none fits the others that end at the same time and have the same free resources
// and speed.
func (m *Matcher[T]) matchAll(now time.Time, yield func(*Slot[T], []T) bool) {
	m.arrange()
	share, settled := m.share(), true
	var after place
	for m.queue.size > 0 {
		d := demand{m.queue.fresh > 0, m.queue.least, now.Add(m.StartMargin)}
		n := m.root.next(&after, &d)
		if n == nil {
			break
		}
		s := n.slot
		after = n.was.at
		taken := m.fill(s, now, share)
		if len(taken) == 0 && !s.apart() && !after.apart {
			after = after.afterEqual()
		}
		settled = settled && len(taken) == 0
		if len(taken) > 0 && !yield(s, taken) {
			return
		}
	}
	m.queue.settle()
	m.settled = settled
}

// share returns the number of queued jobs per cpu. It is computed once per round of matching, so that a slot's limit
// does not depend on the number of slots before it.
func (m *Matcher[T]) share() int { return (m.queue.size + m.cpus - 1) / max(1, m.cpus) }

// fill moves jobs from the queue to a slot: first jobs that start at once, then jobs that wait there.
func (m *Matcher[T]) fill(s *Slot[T], now time.Time, share int) []T {
	var taken []T
	s.unkept, s.stale, s.blocked = false, false, time.Time{}
	s.move()
	take := func(j *Job[T]) {
		m.queue.remove(j)
		s.add(j, now)
		taken = append(taken, j.Value)
	}
	left := s.EndsAt.Sub(now) - m.StartMargin
	for len(s.waiting) == 0 {
		j := m.next(s, now, left)
		if j == nil {
			break
		}
		take(j)
	}
	if s.keptFor == nil {
		m.prefetch(s, now, left, share, take)
	}
	return taken
}

// next returns the job that the slot should start now, still queued, or nil.
func (m *Matcher[T]) next(s *Slot[T], now time.Time, left time.Duration) *Job[T] {
	free, whole := s.rooms(left)
	if j := s.keptFor; j != nil {
		switch {
		case free.holds(&j.Needs):
			return j
		case whole.holds(&j.Needs):
			return nil
		}
		s.unkeep() // not enough time is left
	}
	if free.CPUs <= 0 {
		return nil
	}
	found, passed := m.queue.best(free, whole)
	switch {
	case passed == nil:
	case passed.overtaken == nil:
		passed.overtaken = &overtaken[T]{since: now}
	case passed.overtaken.slot == nil && now.Sub(passed.overtaken.since) >= overtakenLong:
		passed.overtaken.slot, s.keptFor = s, passed
		return nil
	}
	return found
}

// prefetch takes jobs that will wait at the slot for resources that will soon be free. It takes more jobs only when
// half of the waiting jobs have been used up, because a message for each job that ends would cause the round trip that
// prefetching avoids.
func (m *Matcher[T]) prefetch(s *Slot[T], now time.Time, left time.Duration, share int, take func(*Job[T])) {
	soon := s.soon(now, left)
	most := min(prefetchMost, share) * soon.CPUs
	budget := prefetchWork * time.Duration(soon.CPUs)
	var work time.Duration // known work that waits at the slot
	for _, h := range s.waiting {
		work += h.expected
	}
	if len(s.waiting) > most/2 || work > budget/2 {
		return
	}
	for len(s.waiting) < most {
		j, _ := m.queue.best(soon, soon)
		if j == nil {
			return
		}
		expected := s.expect(j)
		if work+expected > budget { // short jobs must not overtake the first job in the queue
			s.blocked = s.unblocked(now, left-prefetchWork-s.Speed.Takes(j.Needs.Time))
			return
		}
		work += expected
		take(j)
	}
}
