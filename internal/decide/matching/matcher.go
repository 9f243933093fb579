package matching

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// overtakenLong is how long jobs behind a big one may start before it does. A slot that is kept free wastes
// cpus, and most jobs that are overtaken find room within seconds without one; to a job that is worth waiting
// for a batch queue ten seconds are little.
const overtakenLong = 10 * time.Second

// A Matcher gives queued jobs to the slots of one personal cluster. The zero value has no jobs, no slots and no
// margin.
type Matcher[T any] struct {
	StartMargin time.Duration // what a slot must have left beyond a job's estimate: starting a process takes time, too

	queue   queue[T]
	arrived int64      // how many jobs were pushed
	slots   []*Slot[T] // that are open, sorted by id
	cpus    int        // of slots
}

// Queued returns how many jobs no slot has.
func (m *Matcher[T]) Queued() int { return m.queue.size }

// Push queues a job that is new, behind those of its priority.
func (m *Matcher[T]) Push(j *Job[T]) {
	m.arrived++
	j.arrived = m.arrived
	m.queue.add(j)
}

// Restore queues a job again, in the place that it had.
func (m *Matcher[T]) Restore(j *Job[T]) { m.queue.add(j) }

// Remove takes the queued jobs of a run out of the queue and returns them, in no order.
func (m *Matcher[T]) Remove(run *Run[T]) []T {
	return m.RemoveFunc(run, func(T) bool { return true })
}

// RemoveFunc takes those queued jobs of a run out of the queue for which which is true, and returns them, in no order.
func (m *Matcher[T]) RemoveFunc(run *Run[T], which func(T) bool) []T {
	var gone []T
	for k := len(run.queued) - 1; k >= 0; k-- {
		if j := run.queued[k]; which(j.Value) { // what takes its place is from behind it, and was asked about
			m.queue.remove(j)
			gone = append(gone, j.Value)
		}
	}
	return gone
}

// RemoveIf is Remove of those jobs that are so.
func (m *Matcher[T]) RemoveIf(run *Run[T], is func(T) bool) (gone []T) {
	for i := len(run.queued) - 1; i >= 0; i-- { // what takes the place of one that is removed was asked before
		if j := run.queued[i]; is(j.Value) {
			m.queue.remove(j)
			gone = append(gone, j.Value)
		}
	}
	return gone
}

// Open lets a slot take jobs from now on.
func (m *Matcher[T]) Open(s *Slot[T]) {
	if s.open {
		return
	}
	i, _ := slices.BinarySearchFunc(m.slots, s, func(a, b *Slot[T]) int { return strings.Compare(a.ID, b.ID) })
	m.slots = slices.Insert(m.slots, i, s)
	m.cpus += s.Host.CPUs
	s.open = true
}

// Close keeps new jobs from a slot, and has it no longer kept free for one. The jobs that it holds stay there
// until they are released.
func (m *Matcher[T]) Close(s *Slot[T]) {
	if !s.open {
		return
	}
	i := slices.Index(m.slots, s)
	m.slots = slices.Delete(m.slots, i, i+1)
	m.cpus -= s.Host.CPUs
	s.open = false
	s.unkeep()
}

// Match gives queued jobs to these slots, or to all if none is named, as far as they are open. It yields the
// slots that take any, each with its new jobs in the order in which they must reach the worker. By then they
// are booked there; slots must not be opened or closed while the loop runs.
func (m *Matcher[T]) Match(now time.Time, only ...*Slot[T]) iter.Seq2[*Slot[T], []T] {
	if len(only) == 0 {
		only = m.slots
	}
	return func(yield func(*Slot[T], []T) bool) {
		share := m.share()
		for _, s := range only {
			if m.queue.size == 0 {
				return
			}
			if !s.open {
				continue
			}
			if taken := m.fill(s, now, share); len(taken) > 0 && !yield(s, taken) {
				return
			}
		}
	}
}

// share is how many queued jobs there are for each cpu. It is computed once for a round of matching, so that
// what a slot may take does not depend on how many slots came before it.
func (m *Matcher[T]) share() int { return (m.queue.size + m.cpus - 1) / max(1, m.cpus) }

// fill takes jobs from the queue for a slot: first those that start at once, then those that wait there.
func (m *Matcher[T]) fill(s *Slot[T], now time.Time, share int) []T {
	var taken []T
	s.unkept = false
	take := func(j *Job[T]) {
		m.queue.remove(j)
		s.add(j, now)
		taken = append(taken, j.Value)
	}
	left := s.EndsAt.Sub(now) - m.StartMargin
	for len(s.waiting) == 0 && m.queue.size > 0 {
		j := m.next(s, now, left)
		if j == nil {
			break
		}
		take(j)
	}
	if s.keptFor == nil && m.queue.size > 0 {
		m.prefetch(s, s.soon(now, left), share, take)
	}
	return taken
}

// next returns the job that the slot should start now, still queued, or nil.
func (m *Matcher[T]) next(s *Slot[T], now time.Time, left time.Duration) *Job[T] {
	free, whole := s.free(left), Resources{s.Host, left}
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

// prefetch takes jobs that wait at the slot for what is soon free there. It tops up only when half has been
// used up: a message for each job that ends would be the round trip that prefetching avoids.
func (m *Matcher[T]) prefetch(s *Slot[T], soon Resources, share int, take func(*Job[T])) {
	most := min(prefetchMost, share) * soon.CPUs
	budget := prefetchWork * time.Duration(soon.CPUs)
	var work time.Duration // that waits there, as far as is known
	for _, h := range s.waiting {
		work += h.expected
	}
	if len(s.waiting) > most/2 || work > budget/2 {
		return
	}
	for len(s.waiting) < most {
		j, _ := m.queue.best(soon, soon)
		if j == nil || work+j.expect() > budget {
			return // what is first in the queue may not be overtaken by what is short
		}
		work += j.expect()
		take(j)
	}
}
