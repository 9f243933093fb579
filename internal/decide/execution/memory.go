package execution

import (
	"github.com/corral-pilot/corral/workflow/profile"
)

// mostMemoryMiB exceeds the memory of any machine, and can be doubled without overflow.
const mostMemoryMiB = 1 << 40

// A sizing holds what is known about the memory of one kind of task, see kindOf. It derives next and starts from sizes
// only after these have changed, because each waiting job reads both.
type sizing struct {
	sizes  profile.Sizes
	lowest int         // the lowest limit that a task exceeded; 0: none has
	next   int         // sizes.Next, once a task has exceeded a limit
	starts map[int]int // :: least memory → sizes.Start
}

// mostStarts is the number of different requests within a kind up to which their first sizes are compared. With more,
// each end of a task counts as a change.
const mostStarts = 16

// start returns the first size of the kind's tasks that get at least the given memory.
func (s *sizing) start(least int) int {
	size, known := s.starts[least]
	if !known {
		if s.starts == nil {
			s.starts = map[int]int{}
		}
		size = s.sizes.Start(least)
		s.starts[least] = size
	}
	return size
}

// update computes the sizes of tasks again, and reports whether those that tasks have got may have changed.
func (s *sizing) update() (changed bool) {
	if s.lowest == 0 {
		return false
	}
	next := s.sizes.Next()
	changed, s.next = next != s.next, next
	if len(s.starts) > mostStarts {
		clear(s.starts)
		return true
	}
	for least, was := range s.starts {
		s.starts[least] = s.sizes.Start(least)
		changed = changed || s.starts[least] != was
	}
	return changed
}

// kindOf returns the key of a task's sizing. Tasks that request no memory have one of their own: they have a share of
// their worker, which may be more than other tasks of their kind request.
func (us *units) kindOf(i int32) int32 {
	if t := &us.plan.Tasks[i]; t.MemoryMiB > 0 {
		return t.Kind
	}
	return -us.plan.Tasks[i].Kind
}

// sizing returns the sizing of a task's kind, for writing. A task of an unknown kind has a new one.
func (us *units) sizing(i int32) *sizing {
	s := us.sizings[us.kindOf(i)]
	if s == nil {
		s = &sizing{}
		if kind := us.kindOf(i); kind != 0 {
			us.sizings[kind] = s
		}
	}
	return s
}

// memory returns the memory that a task needs, in MiB, as far as is known; 0: a share of its worker's. It is what the
// workflow requests, more after the task was killed for its memory, and the first size of its kind after another task
// of the kind was. It is never less than the workflow requests.
func (us *units) memory(i int32) int {
	t := &us.plan.Tasks[i]
	s, exceeded := us.sizings[us.kindOf(i)], us.extra(i).exceeded
	switch {
	case exceeded > 0 && s == nil: // a kind of its own
		return max(t.MemoryMiB, 2*exceeded)
	case exceeded > 0:
		return max(t.MemoryMiB, s.next)
	case s == nil || s.lowest == 0:
		return t.MemoryMiB
	}
	least := t.MemoryMiB
	if least == 0 {
		least = s.lowest
	}
	if start := s.start(least); start > least {
		return start
	}
	return t.MemoryMiB
}

// limit returns the memory that an attempt could use, in MiB: that of its job. It is 0 if that is a share of the
// worker, and if the attempt is not part of a job that a worker has, because the job was returned.
func (us *units) limit(o *Outcome) int {
	if j := us.at(o.Task).job; j != nil && j.seq == o.Seq && j.worker != 0 {
		return j.need.of.MemoryMiB
	}
	return 0
}

// exceed records that a task was killed for its memory. It used at least the limit of its job, and what was measured:
// HTCondor does not report what such a task used. Other tasks of its kind may have been killed at the same time, so
// what it would get now is not what it used.
func (us *units) exceed(o *Outcome, limit int) {
	i := o.Task
	measured := int(min(max(0, o.RSSKiB)>>10, mostMemoryMiB))
	had := min(max(us.plan.Tasks[i].MemoryMiB, us.extra(i).exceeded, measured, limit), mostMemoryMiB)
	if had == 0 {
		return // of an unknown share of its worker
	}
	s := us.sizing(i)
	s.sizes.Killed(had, us.raised(i))
	us.grant(i).exceeded = had
	lower := s.lowest == 0 || had < s.lowest
	if lower {
		s.lowest = had
	}
	us.resized = s.update() || lower || us.resized
}

// suffice records the memory of a task that is done. If it was killed before, it needed more than its limit then,
// although its largest process alone may have used less.
func (us *units) suffice(o *Outcome) {
	exceeded := us.extra(o.Task).exceeded
	used := int((min(max(0, o.RSSKiB), mostMemoryMiB) + 1<<10 - 1) >> 10)
	if us.plan.Tasks[o.Task].Kind == 0 || used == 0 && exceeded == 0 {
		return // of an unknown kind, or not measured
	}
	s := us.sizing(o.Task)
	s.sizes.Ended(max(used, exceeded+1), exceeded > 0)
	us.resized = s.update() || us.resized
}

// raised reports whether a task was killed for its memory.
func (us *units) raised(i int32) bool { return us.extra(i).exceeded > 0 }

// asked returns the memory that the workflow requests for a job of these tasks.
func (p *plan) asked(tasks []int32) (mib int) {
	for _, i := range tasks {
		mib = max(mib, p.Tasks[i].MemoryMiB)
	}
	return mib
}

// within limits the need n of a job to what the offer can meet, if tasks need more memory than the workflow requests:
// the memory of the largest worker is enough if that is more than the limit that tasks have exceeded. Otherwise a task
// that was killed still needs n, which no worker takes, and other tasks need what the workflow requests.
func (us *units) within(n need, tasks []int32, offer Offer) need {
	asked, exceeded := us.plan.asked(tasks), 0
	for _, i := range tasks {
		exceeded = max(exceeded, us.extra(i).exceeded)
	}
	if n.of.MemoryMiB <= asked || len(offer.Capacities) == 0 || offer.takes(n) || exceeded > 0 && len(tasks) > 1 {
		return n
	}
	rest, largest := n, 0
	rest.of.MemoryMiB = 0
	for _, c := range offer.Capacities {
		if c.fits(rest) {
			largest = max(largest, c.MemoryMiB)
		}
	}
	switch {
	case largest > max(asked, exceeded): // it is less than n, which no worker takes
		n.of.MemoryMiB = largest
	case exceeded == 0:
		n.of.MemoryMiB = asked
	}
	return n
}

// misfits reports whether a job that no worker has should get another amount of memory: more, because tasks of its
// kinds were killed since its release, or less, because no worker has that much.
func (x *Execution) misfits(j *job, offer Offer) bool {
	tasks := x.jobs.remaining(j)
	wanted := x.units.within(x.units.need(tasks), tasks, offer).of.MemoryMiB
	return wanted > j.need.of.MemoryMiB || wanted < j.need.of.MemoryMiB && !offer.takes(j.need)
}

// Resized reports whether the memory of jobs that wait for a worker may have changed since Misfits was called.
func Resized(x *Execution) bool { return x.units.resized }

// Learned returns the memory, in MiB, with which tasks of a kind begin because some of them were killed for their
// memory, by kind. It leaves out kinds whose tasks begin with the same memory nevertheless, because few needed more,
// and tasks that request no memory: elsewhere, their share of a worker may be more than what they learned here.
func Learned(x *Execution) map[int32]int {
	all := map[int32]int{}
	for kind, s := range x.units.sizings {
		if kind > 0 && s.lowest > 0 {
			if start := s.start(s.lowest); start > s.lowest {
				all[kind] = start
			}
		}
	}
	return all
}
