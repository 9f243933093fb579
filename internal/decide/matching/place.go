package matching

import (
	"cmp"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A place is the position of a slot in the order in which slots are filled. The slot that ends first comes first, so
// that jobs that need much time find the slots that last longer; among slots that end together, the one with the least
// free resources, so that big jobs find the others.
type place struct {
	endsAt time.Time
	free   corral.Resources
	apart  bool   // the slot may take jobs that another slot with the same endsAt and free would not
	id     string // of the slot
	opened int64  // how many slots were opened before; distinguishes equal ids
}

func (p *place) compare(q *place) int {
	if c := p.endsAt.Compare(q.endsAt); c != 0 {
		return c
	}
	if p.free != q.free {
		return cmp.Or(p.free.CPUs-q.free.CPUs, p.free.GPUs-q.free.GPUs, p.free.MemoryMiB-q.free.MemoryMiB,
			p.free.DiskMiB-q.free.DiskMiB)
	}
	if p.apart != q.apart {
		if q.apart {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(p.id, q.id), cmp.Compare(p.opened, q.opened))
}

// afterEqual returns the place behind all slots that are not apart and take the same jobs as a slot at p.
func (p place) afterEqual() place { return place{endsAt: p.endsAt, free: p.free, apart: true} }

// A standing is the part of a slot's state on which the next round of matching depends.
type standing struct {
	at       place
	listed   bool // in the tree of the slots that may take jobs
	stale    bool // it may take a queued job that was not tried
	restless bool // see Matcher.Restless
	waits    bool // jobs wait at the slot
}

// standing returns the slot's present standing.
func (s *Slot[T]) standing() standing {
	if s.in == nil {
		return standing{}
	}
	at := place{s.EndsAt, s.Host.Minus(s.used), s.apart(), s.ID, s.opened}
	return standing{at, at.apart || at.free.CPUs > 0, s.stale, at.apart || s.unkept, len(s.waiting) > 0}
}

// A node is a slot's part in the tree of the slots that may take jobs. The tree is a treap (Seidel and Aragon,
// Algorithmica 16, 1996): it is sorted by place, and no slot has a higher weight than the slot above it. Each node has
// the maxima of its subtree, so that parts without room are not visited: if jobs need only one kind of resource, a slot
// with room is found in O(log n) steps.
type node[T any] struct {
	was         standing
	left, right *Slot[T]
	weight      uint32

	most   corral.Resources
	latest time.Time
	look   bool // some slot must be visited even if no new job fits it
}

// A demand is the least that the new jobs of a queue need.
type demand struct {
	any   bool // there are new jobs
	needs corral.Resources
	until time.Time // the end of a slot that is left in time
}

// calls reports whether a slot below s may take jobs.
func (d *demand) calls(look bool, free *corral.Resources, latest time.Time) bool {
	return look || d.any && d.needs.FitIn(*free) && !latest.Before(d.until)
}

// next returns the first slot behind a place at or below s that may take jobs, or nil.
func (s *Slot[T]) next(after *place, d *demand) *Slot[T] {
	if s == nil || !d.calls(s.look, &s.most, s.latest) {
		return nil
	}
	if after.compare(&s.was.at) < 0 {
		if found := s.left.next(after, d); found != nil {
			return found
		}
		if d.calls(s.was.at.apart || s.was.stale, &s.was.at.free, s.was.at.endsAt) {
			return s
		}
	}
	return s.right.next(after, d)
}

// summarize computes the maxima of the subtree from those of its parts.
func (s *Slot[T]) summarize() *Slot[T] {
	s.most, s.latest, s.look = s.was.at.free, s.was.at.endsAt, s.was.at.apart || s.was.stale
	for _, part := range [...]*Slot[T]{s.left, s.right} {
		if part != nil {
			s.most, s.look = s.most.Most(part.most), s.look || part.look
			if part.latest.After(s.latest) {
				s.latest = part.latest
			}
		}
	}
	return s
}

// insert adds a slot to the tree below s, and returns the tree.
func (s *Slot[T]) insert(x *Slot[T]) *Slot[T] {
	switch {
	case s == nil:
		x.left, x.right = nil, nil
		return x.summarize()
	case x.weight > s.weight:
		x.left, x.right = s.split(&x.was.at)
		return x.summarize()
	case x.was.at.compare(&s.was.at) < 0:
		s.left = s.left.insert(x)
	default:
		s.right = s.right.insert(x)
	}
	return s.summarize()
}

// split divides a tree into the slots before a place and the others.
func (s *Slot[T]) split(at *place) (before, others *Slot[T]) {
	if s == nil {
		return nil, nil
	}
	if s.was.at.compare(at) < 0 {
		s.right, others = s.right.split(at)
		return s.summarize(), others
	}
	before, s.left = s.left.split(at)
	return before, s.summarize()
}

// delete removes a slot from the tree below s, and returns the tree.
func (s *Slot[T]) delete(x *Slot[T]) *Slot[T] {
	switch {
	case s == x:
		return s.left.join(s.right)
	case x.was.at.compare(&s.was.at) < 0:
		s.left = s.left.delete(x)
	default:
		s.right = s.right.delete(x)
	}
	return s.summarize()
}

// join returns the tree of the slots of two trees, all slots of the second of which come after those of the first.
func (s *Slot[T]) join(t *Slot[T]) *Slot[T] {
	switch {
	case s == nil:
		return t
	case t == nil:
		return s
	case s.weight > t.weight:
		s.right = s.right.join(t)
		return s.summarize()
	}
	t.left = s.join(t.left)
	return t.summarize()
}
