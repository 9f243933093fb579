package spss

import "time"

// A treap is a set of entries sorted by key. It finds the first or the last entry with a minimum value of an attribute
// in logarithmic time (Seidel and Aragon: Randomized search trees, Algorithmica 16, 1996). Each node holds the maxima
// of both attributes in its subtree. Priorities are derived from key and id, so that the same entries form the same
// tree.
type treap struct{ root *entry }

// An entry is a node of a treap. The pair of key and id is unique.
type entry struct {
	key         time.Duration
	id          int32
	priority    uint64
	has, most   [2]time.Duration // attributes of the entry; maxima in its subtree
	left, right *entry
}

// The two attributes.
const (
	byA = iota
	byB
)

func (e *entry) before(key time.Duration, id int32) bool {
	return e.key < key || e.key == key && e.id < id
}

func (e *entry) update() {
	e.most = e.has
	for _, child := range []*entry{e.left, e.right} {
		if child != nil {
			e.most[byA], e.most[byB] = max(e.most[byA], child.most[byA]), max(e.most[byB], child.most[byB])
		}
	}
}

func (t *treap) insert(key time.Duration, id int32, a, b time.Duration) {
	has := [2]time.Duration{a, b}
	low, high := split(t.root, key, id)
	t.root = merge(merge(low, &entry{key: key, id: id, priority: mixed(key, id), has: has, most: has}), high)
}

// remove removes an entry, if it exists.
func (t *treap) remove(key time.Duration, id int32) {
	low, rest := split(t.root, key, id)
	_, high := split(rest, key, id+1)
	t.root = merge(low, high)
}

// first returns the entry with the smallest key from at on whose attribute is at least enough, or nil if there is none.
func (t *treap) first(at time.Duration, attribute int, enough time.Duration) *entry {
	return first(t.root, at, attribute, enough)
}

func first(e *entry, at time.Duration, attribute int, enough time.Duration) *entry {
	if e == nil || e.most[attribute] < enough {
		return nil
	}
	if e.key >= at {
		if found := first(e.left, at, attribute, enough); found != nil {
			return found
		}
		if e.has[attribute] >= enough {
			return e
		}
	}
	return first(e.right, at, attribute, enough)
}

// last returns the entry with the largest key up to at whose attribute is at least enough, or nil if there is none.
func (t *treap) last(at time.Duration, attribute int, enough time.Duration) *entry {
	return last(t.root, at, attribute, enough)
}

func last(e *entry, at time.Duration, attribute int, enough time.Duration) *entry {
	if e == nil || e.most[attribute] < enough {
		return nil
	}
	if e.key <= at {
		if found := last(e.right, at, attribute, enough); found != nil {
			return found
		}
		if e.has[attribute] >= enough {
			return e
		}
	}
	return last(e.left, at, attribute, enough)
}

// split divides a tree into the entries before a key and the rest.
func split(e *entry, key time.Duration, id int32) (low, high *entry) {
	if e == nil {
		return nil, nil
	}
	if e.before(key, id) {
		e.right, high = split(e.right, key, id)
		e.update()
		return e, high
	}
	low, e.left = split(e.left, key, id)
	e.update()
	return low, e
}

// merge joins two trees; all entries of low must precede those of high.
func merge(low, high *entry) *entry {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case low.priority > high.priority:
		low.right = merge(low.right, high)
		low.update()
		return low
	}
	high.left = merge(low, high.left)
	high.update()
	return high
}

// mixed is a hash of key and id (SplitMix64: Steele, Lea, Flood, 2014).
func mixed(key time.Duration, id int32) uint64 {
	z := uint64(key)*0x9e3779b97f4a7c15 + uint64(id) + 1
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
