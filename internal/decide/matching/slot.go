package matching

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// The limits of prefetching. A round trip to a worker takes up to about 100 ms over a wide-area network: 150 ms of work
// bridge this time, and are too little to matter if another cpu is idle in the meantime. Starting a process takes a
// millisecond or two, so 64 jobs amount to about as much work, whatever their estimates are.
const (
	prefetchWork = 150 * time.Millisecond // per cpu: expected work that may wait at a worker
	prefetchMost = 64                     // per cpu: jobs that may wait at a worker

	// RecallAfter is how long a job waits at a worker before it is recalled: several times prefetchWork, so that a job
	// is recalled only if the job before it takes longer than expected.
	RecallAfter = time.Second
)

// A Slot is the matching's view of a worker. The caller sets the exported fields, and changes them only while the slot
// is closed. A closed slot takes no new jobs, but keeps the jobs that it holds.
type Slot[T any] struct {
	ID     string           // of slots with the same end and free resources, the one with the lowest ID is filled first
	Host   corral.Resources // the worker's total resources for jobs
	EndsAt time.Time        // when the worker stops running jobs
	Speed  corral.Speed     // of the worker's host

	in      *Matcher[T] // nil: closed
	opened  int64       // number of the slot among those that were opened
	used    corral.Resources
	running []held[T]
	waiting []held[T]
	short   int       // running jobs that were expected to end soon, behind which others may wait
	keptFor *Job[T]   // the only job that the slot takes; nil: any
	unkept  bool      // the slot was kept free when it was last filled, but no longer is
	stale   bool      // the slot has changed since it was last filled
	moved   bool      // the slot is among those for the next arrange
	blocked time.Time // when time alone may end that a long job blocks the jobs behind it; zero: none does
	node    *node[T]
}

// held is a job on a slot.
type held[T any] struct {
	job      *Job[T]
	begun    time.Time     // when the job started, as far as is known, or began to wait
	expected time.Duration // expected duration on the slot, when the slot received it
}

// short reports whether the job was expected to end so soon that others may wait behind it.
func (h held[T]) short() bool { return h.expected <= prefetchWork }

// expect returns the expected duration of a job on the slot.
func (s *Slot[T]) expect(j *Job[T]) time.Duration {
	if s.Speed == 0 {
		return j.expect()
	}
	return time.Duration(float64(j.expect()) / float64(s.Speed))
}

// Free returns the resources that no job uses.
func (s *Slot[T]) Free() corral.Resources { return s.Host.Minus(s.used).Most(corral.Resources{}) }

// Running returns the jobs that are believed to run, in the order in which they started.
func (s *Slot[T]) Running() []T { return values(s.running) }

// Waiting returns the jobs that are believed to wait behind the running jobs.
func (s *Slot[T]) Waiting() []T { return values(s.waiting) }

// Overdue returns the jobs that should be recalled because they wait behind a job that takes longer than expected.
func (s *Slot[T]) Overdue(now time.Time) []T {
	if len(s.waiting) == 0 || now.Sub(s.waiting[0].begun) < RecallAfter {
		return nil
	}
	return values(s.waiting)
}

// apart reports whether what the slot takes depends on more than its end and its free resources: jobs wait or may wait
// there, or it is kept free.
func (s *Slot[T]) apart() bool { return len(s.waiting) > 0 || s.short > 0 || s.keptFor != nil }

// move has the matcher look at the slot's standing again.
func (s *Slot[T]) move() {
	if s.in != nil && !s.moved {
		s.moved = true
		s.in.moved = append(s.in.moved, s)
	}
}

func values[T any](jobs []held[T]) []T {
	all := make([]T, len(jobs))
	for i, h := range jobs {
		all[i] = h.job.Value
	}
	return all
}

// Reset replaces the assumed state of a closed slot's worker with the state that the worker itself reports: the jobs in
// running run there, and the jobs in waiting wait there in this order. The running jobs need not fit, because the
// worker may hold jobs that it accepted under other terms.
func (s *Slot[T]) Reset(now time.Time, running, waiting []*Job[T]) {
	s.running, s.waiting, s.short, s.used = nil, nil, 0, corral.Resources{}
	for _, j := range running {
		s.start(held[T]{j, now, s.expect(j)})
	}
	for _, j := range waiting {
		s.waiting = append(s.waiting, held[T]{j, now, s.expect(j)})
	}
	s.advance(now)
}

// Release removes a job from the slot, if it is there, and starts waiting jobs.
func (s *Slot[T]) Release(j *Job[T], now time.Time) {
	is := func(h held[T]) bool { return h.job == j }
	if i := slices.IndexFunc(s.running, is); i >= 0 {
		if s.running[i].short() {
			s.short--
		}
		s.running = slices.Delete(s.running, i, i+1)
		s.used = s.used.Minus(j.Needs.Resources)
	} else if i := slices.IndexFunc(s.waiting, is); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.advance(now)
	s.stale = true
	if s.in != nil {
		s.in.settled = false
	}
	s.move()
}

// add adds a job to the slot: the job starts if it fits and no other job waits before it.
func (s *Slot[T]) add(j *Job[T], now time.Time) {
	s.waiting = append(s.waiting, held[T]{j, now, s.expect(j)})
	s.advance(now)
}

// advance starts waiting jobs, in order, as long as there is room. Whether enough time is left was checked when the
// slot took them.
func (s *Slot[T]) advance(now time.Time) {
	for len(s.waiting) > 0 {
		h := s.waiting[0]
		if !s.used.Plus(h.job.Needs.Resources).FitIn(s.Host) {
			return
		}
		s.waiting = slices.Delete(s.waiting, 0, 1)
		h.begun = now
		s.start(h)
	}
}

func (s *Slot[T]) start(h held[T]) {
	s.running = append(s.running, h)
	if h.short() {
		s.short++
	}
	s.used = s.used.Plus(h.job.Needs.Resources)
}

// rooms returns the slot's room for a job that starts at once, and its room if it had no jobs. Jobs may use the slot
// for the time left.
func (s *Slot[T]) rooms(left time.Duration) (free, whole Resources) {
	longest := s.Speed.Within(left)
	return Resources{s.Host.Minus(s.used), longest}, Resources{s.Host, longest}
}

// soon returns the slot's room for a job that waits there: all resources of the slot except those used by jobs that
// will not end soon, namely jobs that were expected to take long or have already taken long.
func (s *Slot[T]) soon(now time.Time, left time.Duration) Resources {
	r := Resources{s.Host, s.Speed.Within(left - prefetchWork)}
	for _, h := range s.running {
		if !h.short() || now.Sub(h.begun) > 2*prefetchWork {
			r.Resources = r.Minus(h.job.Needs.Resources)
		}
	}
	return r
}

// unblocked returns when a job that fits the slot's soon only for some time may cease to do so: when that time is over,
// or when a running job has taken longer than jobs that end soon.
func (s *Slot[T]) unblocked(now time.Time, fits time.Duration) time.Time {
	at := now.Add(fits + 1)
	for _, h := range s.running {
		if late := h.begun.Add(2*prefetchWork + 1); h.short() && late.After(now) && late.Before(at) {
			at = late
		}
	}
	return at
}

// changes returns when time alone may change what the slot takes, or when its waiting jobs have to be recalled; zero:
// never.
func (s *Slot[T]) changes() time.Time {
	at := s.blocked
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(s.waiting) > 0 {
		sooner(s.waiting[0].begun.Add(RecallAfter))
	}
	if j := s.keptFor; j != nil {
		sooner(s.EndsAt.Add(1 - s.in.StartMargin - s.Speed.Takes(j.Needs.Time)))
	}
	return at
}

// unkeep stops keeping the slot free for a job: another slot may be kept for it.
func (s *Slot[T]) unkeep() {
	if s.keptFor != nil {
		s.keptFor.overtaken.slot, s.keptFor = nil, nil
		s.unkept, s.stale = true, true
		s.in.settled = false
		s.move()
	}
}
