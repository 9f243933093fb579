package slot

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// A Slot is a number of processors that a site offers for an interval of time (Singh 2008, equation 2). Times are whole
// milliseconds.
type Slot struct {
	Start      time.Duration
	Length     time.Duration // for an extensible slot: until the site's planning horizon
	Processors int
	Price      cost.Money // per processor and hour
	Fee        cost.Money // per piece that is taken, regardless of its size
	Divisible  bool       // a part of it may be taken
	Extensible bool       // it may be held beyond its end
}

// End returns the end of the slot, without extension.
func (s Slot) End() time.Duration { return s.Start + s.Length }

// The limits of a slot: 30 years ahead, a million processors, and prices whose products do not overflow.
const (
	mostTime       = 30 * 366 * 24 * time.Hour
	mostProcessors = 1_000_000
)

// Check returns an error of kind Invalid if a slot is invalid.
func (s Slot) Check() error {
	switch {
	case s.Start < 0 || s.Start > mostTime:
		return corral.Errorf(corral.Invalid, "the slot starts at %s, which is not within 30 years from now", s.Start)
	case s.Length <= 0:
		return corral.Errorf(corral.Invalid, "the slot has no length: it lasts %s", s.Length)
	case s.Length > mostTime:
		return corral.Errorf(corral.Invalid, "the slot lasts %s, which is more than 30 years", s.Length)
	case s.Start%time.Millisecond != 0 || s.Length%time.Millisecond != 0:
		return corral.Errorf(corral.Invalid, "the slot's times must be whole milliseconds: %s for %s", s.Start,
			s.Length)
	case s.Processors < 1 || s.Processors > mostProcessors:
		return corral.Errorf(corral.Invalid, "the slot has %d processors, but must have 1 to %d", s.Processors,
			mostProcessors)
	case s.Price < 0 || s.Fee < 0:
		return corral.Errorf(corral.Invalid, "the slot's price or fee is negative: %s, %s", s.Price, s.Fee)
	}
	return nil
}

// A Piece is the part of one slot that is taken.
type Piece struct {
	Slot       int // index of the slot
	Start      time.Duration
	Length     time.Duration
	Processors int
}

// End returns when the piece becomes free again.
func (p Piece) End() time.Duration { return p.Start + p.Length }

// Cost returns the cost of a piece of the slot (Singh 2008, table 1): its processor time at the slot's price, and the
// fee. If the piece must not be taken, the error is of kind Unsatisfiable and names the restriction.
func (s Slot) Cost(p Piece) (cost.Money, error) {
	if why := s.refuses(p); why != "" {
		return 0, corral.Errorf(corral.Unsatisfiable, "slot %d does not allow this: %s", p.Slot, why)
	}
	var b bill
	b.add(s.Price, int64(p.Processors)*p.Length.Milliseconds())
	return b.money().Plus(s.Fee), nil
}

// refuses returns the first restriction, in the order of table 1, that a piece violates, or "" if it violates none.
func (s Slot) refuses(p Piece) string {
	switch {
	case p.Processors < 1 || p.Length <= 0:
		return fmt.Sprintf("%d processors for %s: both must be positive", p.Processors, p.Length)
	case p.Processors > s.Processors:
		return fmt.Sprintf("it has only %d of %d processors", s.Processors, p.Processors)
	case p.Start < s.Start:
		return fmt.Sprintf("it starts at %s, after %s", s.Start, p.Start)
	case !s.Extensible && p.End() > s.End():
		return fmt.Sprintf("it ends at %s, before %s, and is not extensible", s.End(), p.End())
	case s.Divisible:
		return ""
	case p.Processors < s.Processors:
		return fmt.Sprintf("it has %d processors, which must be taken as a whole", s.Processors)
	case p.Start > s.Start:
		return fmt.Sprintf("it starts at %s, and must be taken from its start", s.Start)
	case p.End() < s.End():
		return fmt.Sprintf("it ends at %s, and must be taken to its end", s.End())
	}
	return ""
}

// A bill adds processor time at several prices exactly; the sum is rounded once.
type bill struct{ high, low uint64 } // micro-units × milliseconds × processors

// add adds processor time in milliseconds at a price per hour.
func (b *bill) add(price cost.Money, work int64) {
	high, low := bits.Mul64(uint64(price), uint64(work))
	var carry uint64
	b.low, carry = bits.Add64(b.low, low, 0)
	b.high, carry = bits.Add64(b.high, high, carry)
	if carry > 0 {
		b.high = math.MaxUint64
	}
}

// money returns the sum, rounded half up; it saturates at the maximum.
func (b *bill) money() cost.Money {
	const hour = uint64(time.Hour / time.Millisecond)
	low, carry := bits.Add64(b.low, hour/2, 0)
	high := b.high + carry
	if b.high >= hour || high >= hour {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, hour)
	return cost.Money(min(quotient, math.MaxInt64))
}

// Charge returns the cost of processor time in milliseconds at a price per hour, rounded half up.
func Charge(price cost.Money, work int64) cost.Money {
	var b bill
	b.add(price, work)
	return b.money()
}
