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

// A List holds the free and the taken parts of slots. Use NewList to make one. It is not safe for concurrent use.
type List struct {
	slots []Slot
	order []int  // indices of the slots, sorted like their rests
	free  []rest // sorted, see before
	used  []use  // per slot

	pool  []int // result of Find: indices in free, descending
	found Piece // result of Find: start, length and processors

	record bool
	taken  []Piece
}

// A rest is a free part of a slot: a number of processors that are free in an interval. The last one of an
// extensible slot has no end.
type rest struct {
	start, end time.Duration
	processors int
	slot       int
}

// before orders rests by start. In case of a tie the rest that ends first comes first, so that holes are filled before
// open ends are used. This rule, together with merging equal rests, reproduces figure 1 of the thesis.
func (r rest) before(o rest) int {
	return cmp.Or(cmp.Compare(r.start, o.start), cmp.Compare(r.end, o.end), cmp.Compare(r.slot, o.slot))
}

// A use summarizes the taken pieces of a slot.
type use struct {
	work   int64 // milliseconds × processors
	pieces int
	until  time.Duration // the last end
}

// NewList returns a list in which all slots are free. The slots must pass Check, and must not be modified later.
func NewList(slots []Slot) *List {
	l := &List{slots: slots, used: make([]use, len(slots)), order: make([]int, len(slots))}
	for i := range slots {
		l.order[i] = i
	}
	slices.SortFunc(l.order, func(i, j int) int { return l.whole(i).before(l.whole(j)) })
	l.Reset(func(int) bool { return true })
	return l
}

// whole returns a whole slot.
func (l *List) whole(i int) rest {
	s := &l.slots[i]
	r := rest{s.Start, s.End(), s.Processors, i}
	if s.Extensible {
		r.end = Forever
	}
	return r
}

// Reset frees all chosen slots, and removes the others from the list.
func (l *List) Reset(chosen func(slot int) bool) {
	l.free, l.taken = l.free[:0], l.taken[:0]
	clear(l.used)
	for _, i := range l.order {
		if chosen(i) {
			l.free = append(l.free, l.whole(i))
		}
	}
}

// Record makes the list record the taken pieces from now on, for Needed.
func (l *List) Record() { l.record = true }

// Find returns the earliest start, not before the given instant, from which n processors are free for the given length
// (Singh 2008, figure 2). It examines free slots in order. A slot that is wide and long enough is taken alone. If a
// slot is long enough but too narrow, earlier slots that are free during the whole interval are added, from the latest
// to the first, until they are wide enough together. A task with a length of 0 starts at once. ok is false if there is
// no such start.
func (l *List) Find(earliest, length time.Duration, n int) (start time.Duration, ok bool) {
	l.pool, l.found = l.pool[:0], Piece{Start: earliest, Length: length, Processors: n}
	if length == 0 {
		return earliest, true
	}
	// Processors of earlier rests that are free for long enough from start on.
	beside, ends := 0, heap.New(ending.before)
	for i := range l.free {
		r := &l.free[i]
		start = max(r.start, earliest)
		if length > r.end-start { // written so that the sum cannot overflow
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

// An ending is the time at which processors cease to be free.
type ending struct {
	at         time.Duration
	processors int
}

func (a ending) before(b ending) bool { return a.at < b.at }

// gather adds a rest to the pool, and then the earlier rests that last until an instant, until the pool contains enough
// processors.
func (l *List) gather(i int, until time.Duration) {
	for left := l.found.Processors; left > 0; i-- {
		if r := &l.free[i]; r.end >= until {
			l.pool = append(l.pool, i)
			left -= r.processors
		}
	}
}

// Take takes the piece that the last Find found; the list must not have changed in between.
func (l *List) Take() {
	n := l.found.Processors
	if l.found.Length == 0 {
		return
	}
	var left [3 * 8]rest
	all := left[:0]
	for _, i := range l.pool { // descending, so that the indices remain valid
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

// carve takes k processors of a rest for the found piece, and adds the remaining parts to left: the unused processors,
// and the processors before and after the piece (Singh 2008, figure 3).
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

// insert inserts a rest in order, or merges it with an equal one.
func (l *List) insert(r rest) {
	i := sort.Search(len(l.free), func(i int) bool { return l.free[i].before(r) >= 0 })
	if i < len(l.free) && l.free[i].before(r) == 0 {
		l.free[i].processors += r.processors
		return
	}
	l.free = slices.Insert(l.free, i, r)
}

// Cost returns the cost of the taken pieces of several lists, rounded once, so that equal costs are equal however they
// are divided among sites. A divisible slot is charged by its pieces. An indivisible
// slot is charged once as a whole as soon as any part is used, and its remaining parts are free of charge (Singh 2008,
// section 4.5: the cost is the difference between the costs of the slots before and after). Unused slots cost nothing.
func Cost(lists ...*List) cost.Money {
	var b bill
	var fees cost.Money
	for _, l := range lists {
		fees = fees.Plus(l.charge(&b))
	}
	return b.money().Plus(fees)
}

// charge adds the taken pieces to a bill, and returns their fees.
func (l *List) charge(b *bill) (fees cost.Money) {
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
	return fees
}

// plus adds non-negative numbers; it saturates at the maximum.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// times returns n fees; it saturates at the maximum.
func times(fee cost.Money, n int) cost.Money {
	if fee > math.MaxInt64/cost.Money(n) {
		return math.MaxInt64
	}
	return fee * cost.Money(n)
}

// Needed returns the pieces to reserve for everything taken since Record: the pieces of divisible slots, and the used
// indivisible slots as a whole, with their extensions. The pieces are sorted by slot and start.
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
