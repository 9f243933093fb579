package slot

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/cost"
)

// A List is what is free of some slots, and what was taken. Make one with NewList. It is one goroutine's.
type List struct {
	slots []Slot
	order []int  // of the slots, as their rests are in order
	free  []rest // in order, see before
	used  []use  // of each slot

	pool  []int // what Find found: indices of free, descending
	found Piece // when, for how long, on how many processors

	record bool
	taken  []Piece
}

// A rest is processors of a slot that are free from an instant to another; of an extensible slot, for ever.
type rest struct {
	start, end time.Duration
	processors int
	slot       int
}

// before orders rests by start. Of equal starts the one that ends first comes first, so that holes are filled before
// what is open; the thesis's figure 1 comes out with this rule, and with equal rests being one.
func (r rest) before(o rest) int {
	return cmp.Or(cmp.Compare(r.start, o.start), cmp.Compare(r.end, o.end), cmp.Compare(r.slot, o.slot))
}

// A use is what was taken of a slot.
type use struct {
	work   int64 // milliseconds of a processor
	pieces int
	until  time.Duration // the last end
}

// NewList returns a list of which all slots are free. They must pass Check, and stay as they are.
func NewList(slots []Slot) *List {
	l := &List{slots: slots, used: make([]use, len(slots)), order: make([]int, len(slots))}
	for i := range slots {
		l.order[i] = i
	}
	slices.SortFunc(l.order, func(i, j int) int { return l.whole(i).before(l.whole(j)) })
	l.Reset(func(int) bool { return true })
	return l
}

// Machine returns the list of a site of so many processors on which nothing is planned: it is the thesis's
// non-delaying scheduler (Singh 2008, section 3.1), which has no other state.
func Machine(processors int, from time.Duration) *List {
	return NewList([]Slot{{Start: from, Length: time.Hour, Processors: processors, Divisible: true, Extensible: true}})
}

// whole is all of a slot.
func (l *List) whole(i int) rest {
	s := &l.slots[i]
	r := rest{s.Start, s.End(), s.Processors, i}
	if s.Extensible {
		r.end = Forever
	}
	return r
}

// Reset makes all slots that are chosen free again. The others are not in the list.
func (l *List) Reset(chosen func(slot int) bool) {
	l.free, l.taken = l.free[:0], l.taken[:0]
	clear(l.used)
	for _, i := range l.order {
		if chosen(i) {
			l.free = append(l.free, l.whole(i))
		}
	}
}

// Record has the list keep, from now on, which pieces are taken, for Taken.
func (l *List) Record() { l.record = true }

// Taken returns the pieces that were taken since Record, in the order in which they were.
func (l *List) Taken() []Piece { return l.taken }

// Find returns the earliest start, not before an instant, at which n processors are free for a length (Singh 2008,
// figure 2). It looks at free slots in order. One that is wide and long enough is taken alone; to one that is only
// long enough those before it are added, from the latest to the first, as far as they are free throughout, until they
// are wide enough together. What needs no time starts at once. ok is false if there is no such start.
func (l *List) Find(earliest, length time.Duration, n int) (start time.Duration, ok bool) {
	l.pool, l.found = l.pool[:0], Piece{Start: earliest, Length: length, Processors: n}
	if length == 0 {
		return earliest, true
	}
	beside, ends := 0, heap.New(ending.before) // processors of earlier rests that last long enough from start on
	for i := range l.free {
		r := &l.free[i]
		start = max(r.start, earliest)
		if length > r.end-start { // also where the sum is beyond what a Duration holds
			continue
		}
		for ends.Len() > 0 && length > ends.First().at-start {
			beside -= ends.Pop().processors
		}
		if beside += r.processors; beside >= n {
			l.gather(i, start+length)
			l.found.Start = start
			return start, true
		}
		ends.Push(ending{r.end, r.processors})
	}
	return 0, false
}

// An ending is when processors are no longer free.
type ending struct {
	at         time.Duration
	processors int
}

func (a ending) before(b ending) bool { return a.at < b.at }

// gather puts a rest and those before it that last until an instant into the pool, until they are enough.
func (l *List) gather(i int, until time.Duration) {
	for left := l.found.Processors; left > 0; i-- {
		if r := &l.free[i]; r.end >= until {
			l.pool = append(l.pool, i)
			left -= r.processors
		}
	}
}

// Take takes what Find found; nothing may have happened in between.
func (l *List) Take() {
	n := l.found.Processors
	if l.found.Length == 0 {
		return
	}
	var left [3 * 8]rest
	all := left[:0]
	for _, i := range l.pool { // descending, so that the indices hold
		r := l.free[i]
		l.free = slices.Delete(l.free, i, i+1)
		k := min(n, r.processors)
		n -= k
		all = l.carve(all, r, k)
	}
	for _, r := range all {
		l.insert(r)
	}
}

// Place takes n processors for a length at the earliest start from an instant on, as Find says.
func (l *List) Place(earliest, length time.Duration, n int) (start time.Duration, ok bool) {
	if start, ok = l.Find(earliest, length, n); ok {
		l.Take()
	}
	return start, ok
}

// carve takes k processors of a rest for what was found, and adds what is left of it to left: processors that are not
// used, the time before and the time after (Singh 2008, figure 3).
func (l *List) carve(left []rest, r rest, k int) []rest {
	p := Piece{r.slot, l.found.Start, l.found.Length, k}
	u := &l.used[r.slot]
	u.work = plus(u.work, int64(k)*p.Length.Milliseconds())
	u.pieces++
	u.until = max(u.until, p.End())
	if l.record {
		l.taken = append(l.taken, p)
	}
	if k < r.processors {
		left = append(left, rest{r.start, r.end, r.processors - k, r.slot})
	}
	if r.start < p.Start {
		left = append(left, rest{r.start, p.Start, k, r.slot})
	}
	if r.end > p.End() {
		left = append(left, rest{p.End(), r.end, k, r.slot})
	}
	return left
}

// insert puts a rest in its place, or adds its processors to an equal one.
func (l *List) insert(r rest) {
	i := sort.Search(len(l.free), func(i int) bool { return l.free[i].before(r) >= 0 })
	if i < len(l.free) && l.free[i].before(r) == 0 {
		l.free[i].processors += r.processors
		return
	}
	l.free = slices.Insert(l.free, i, r)
}

// Cost returns what was taken costs, rounded once. Of a divisible slot the pieces are charged; one that is not is
// charged whole as soon as anything of it is used, once, and what is left of it may be used for nothing more (Singh
// 2008, section 4.5: the cost is that of the difference between the slots before and after). Slots of which nothing
// was taken cost nothing.
func (l *List) Cost() cost.Money {
	var b bill
	var fees cost.Money
	for i := range l.used {
		u, s := &l.used[i], &l.slots[i]
		switch {
		case u.pieces == 0:
		case s.Divisible:
			b.add(s.Price, u.work)
			fees = fees.Plus(times(s.Fee, u.pieces))
		default:
			b.add(s.Price, int64(s.Processors)*(max(s.End(), u.until)-s.Start).Milliseconds())
			fees = fees.Plus(s.Fee)
		}
	}
	return b.money().Plus(fees)
}

// plus is a sum of what is not negative; beyond the range it stays at its maximum.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// times is n fees; beyond the range it stays at its maximum.
func times(fee cost.Money, n int) cost.Money {
	if fee > math.MaxInt64/cost.Money(n) {
		return math.MaxInt64
	}
	return fee * cost.Money(n)
}

// Needed returns the pieces that have to be reserved for what was taken since Record: those of divisible slots as they
// were taken, the others whole, with their extension. They are in the order of slots, and of one slot by start.
func (l *List) Needed() []Piece {
	var all []Piece
	for _, p := range l.taken {
		if l.slots[p.Slot].Divisible {
			all = append(all, p)
		}
	}
	for i, u := range l.used {
		if s := &l.slots[i]; u.pieces > 0 && !s.Divisible {
			all = append(all, Piece{i, s.Start, max(s.End(), u.until) - s.Start, s.Processors})
		}
	}
	slices.SortStableFunc(all, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Start, b.Start))
	})
	return all
}

// Free returns what is free, as slots with the prices of those that they are left of, in the order of time. What ends
// because something is taken behind it is neither divisible nor extensible, so that no site is cut to shreds; what has
// no end is both, and reaches to the horizon, or as far as it is there at all.
func (l *List) Free(horizon time.Duration) []Slot {
	all := make([]Slot, len(l.free))
	for i, r := range l.free {
		s, open := l.slots[r.slot], r.end == Forever
		all[i] = Slot{r.start, r.end - r.start, r.processors, s.Price, s.Fee, open, open}
		if open {
			all[i].Length = max(horizon, r.start+time.Millisecond) - r.start
		}
	}
	return all
}
