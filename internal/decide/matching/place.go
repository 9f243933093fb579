package matching

import (
	"cmp"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A place is the position of a slot in the order in which slots are filled. The slot that ends first comes first, so
// that jobs that need much time find the slots that last longer; among slots that end together, the one with the least
// free resources, so that big jobs find the others; then the fastest.
type place struct {
	endsAt time.Time
	free   corral.Resources
	speed  corral.Speed // never 0
	apart  bool         // the slot may take jobs that another slot with the same endsAt, free and speed would not
	id     string       // of the slot
	opened int64        // how many slots were opened before; distinguishes equal ids
}

func (p *place) compare(q *place) int {
	if c := p.endsAt.Compare(q.endsAt); c != 0 {
		return c
	}
	if p.free != q.free {
		return cmp.Or(p.free.CPUs-q.free.CPUs, p.free.GPUs-q.free.GPUs, p.free.MemoryMiB-q.free.MemoryMiB,
			p.free.DiskMiB-q.free.DiskMiB)
	}
	if p.speed != q.speed {
		return cmp.Compare(q.speed, p.speed)
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
func (p place) afterEqual() place {
	return place{endsAt: p.endsAt, free: p.free, speed: p.speed, apart: true}
}

// A standing is the part of a slot's state on which the next round of matching depends.
type standing struct {
	at       place
	listed   bool // in the tree of the slots that may take jobs
	stale    bool // it may take a queued job that was not tried
	restless bool // a further round of matching may have a result although the slot has not changed
	changes  time.Time
}

// standing returns the slot's present standing.
func (s *Slot[T]) standing() standing {
	if s.in == nil {
		return standing{}
	}
	at := place{s.EndsAt, s.Host.Minus(s.used), corral.Speed(s.Speed.Factor()), s.apart(), s.ID, s.opened}
	return standing{at, at.apart || at.free.CPUs > 0, s.stale, at.apart || s.unkept, s.changes()}
}

// A node is a slot in the tree of the slots that may take jobs. The tree is a treap (Seidel and Aragon,
// Algorithmica 16, 1996): it is sorted by place, and no slot has a higher weight than the slot above it. Each node has
// the maxima of its subtree, so that parts without room are not visited: if jobs need only one kind of resource, a slot
// with room is found in O(log n) steps.
type node[T any] struct {
	slot        *Slot[T]
	was         standing // of the slot, as of the latest arrange
	left, right *node[T]
	weight      uint32

	most   corral.Resources
	latest time.Time
	look   bool // some slot must be visited even if no new job fits it

	changes time.Time // the earliest of its slots; zero: none
}

// A demand is the least that the new jobs of a queue need.
type demand struct {
	any   bool // there are new jobs
	needs Resources
	from  time.Time // when they start
}

// calls reports whether a slot with the given speed, or one of several slots none of which is faster, may take jobs.
func (d *demand) calls(look bool, free *corral.Resources, latest time.Time, speed corral.Speed) bool {
	return look || d.any && d.needs.FitIn(*free) && latest.Sub(d.from) >= speed.Takes(d.needs.Time)
}

// next returns the first slot behind a place at or below n that may take jobs, or nil.
func (n *node[T]) next(after *place, d *demand) *node[T] {
	if n == nil || !d.calls(n.look, &n.most, n.latest, 1) {
		return nil
	}
	if after.compare(&n.was.at) < 0 {
		if found := n.left.next(after, d); found != nil {
			return found
		}
		if d.calls(n.was.at.apart || n.was.stale, &n.was.at.free, n.was.at.endsAt, n.was.at.speed) {
			return n
		}
	}
	return n.right.next(after, d)
}

// summarize computes the maxima of the subtree from those of its parts.
func (n *node[T]) summarize() *node[T] {
	n.most, n.latest, n.look = n.was.at.free, n.was.at.endsAt, n.was.at.apart || n.was.stale
	n.changes = n.was.changes
	for _, part := range [...]*node[T]{n.left, n.right} {
		if part != nil {
			n.most, n.look = n.most.Most(part.most), n.look || part.look
			if part.latest.After(n.latest) {
				n.latest = part.latest
			}
			if n.changes.IsZero() || !part.changes.IsZero() && part.changes.Before(n.changes) {
				n.changes = part.changes
			}
		}
	}
	return n
}

// insert adds a slot to the tree below n, and returns the tree.
func (n *node[T]) insert(x *node[T]) *node[T] {
	switch {
	case n == nil:
		x.left, x.right = nil, nil
		return x.summarize()
	case x.weight > n.weight:
		x.left, x.right = n.split(&x.was.at)
		return x.summarize()
	case x.was.at.compare(&n.was.at) < 0:
		n.left = n.left.insert(x)
	default:
		n.right = n.right.insert(x)
	}
	return n.summarize()
}

// split divides a tree into the slots before a place and the others.
func (n *node[T]) split(at *place) (before, others *node[T]) {
	if n == nil {
		return nil, nil
	}
	if n.was.at.compare(at) < 0 {
		n.right, others = n.right.split(at)
		return n.summarize(), others
	}
	before, n.left = n.left.split(at)
	return before, n.summarize()
}

// delete removes a slot from the tree below n, and returns the tree.
func (n *node[T]) delete(x *node[T]) *node[T] {
	switch {
	case n == x:
		return n.left.join(n.right)
	case x.was.at.compare(&n.was.at) < 0:
		n.left = n.left.delete(x)
	default:
		n.right = n.right.delete(x)
	}
	return n.summarize()
}

// join returns the tree of the slots of two trees, all slots of the second of which come after those of the first.
func (n *node[T]) join(t *node[T]) *node[T] {
	switch {
	case n == nil:
		return t
	case t == nil:
		return n
	case n.weight > t.weight:
		n.right = n.right.join(t)
		return n.summarize()
	}
	t.left = n.join(t.left)
	return t.summarize()
}
