package slot

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// Forever is the end of what has none.
const Forever time.Duration = math.MaxInt64

// A Slot is processors of a site for a time (Singh 2008, equation 2). Times are whole milliseconds.
type Slot struct {
	Start      time.Duration
	Length     time.Duration // of an extensible slot: as far as the site looks ahead
	Processors int
	Price      cost.Money // of a processor for an hour
	Fee        cost.Money // of each piece that is taken, whatever its size
	Divisible  bool       // less than all of it may be taken
	Extensible bool       // it may be held beyond its end
}

// End is when the slot ends, unless it is extended.
func (s Slot) End() time.Duration { return s.Start + s.Length }

// The bounds of a slot: 30 years ahead, a million processors, and prices whose products stay in range.
const (
	mostTime       = 30 * 366 * 24 * time.Hour
	mostProcessors = 1_000_000
)

// Check says what is wrong with a slot. Errors are of kind Invalid.
func (s Slot) Check() error {
	switch {
	case s.Start < 0 || s.Start > mostTime:
		return corral.Errorf(corral.Invalid, "the slot starts at %s: that is not within 30 years from now", s.Start)
	case s.Length <= 0:
		return corral.Errorf(corral.Invalid, "the slot has no length: it lasts %s", s.Length)
	case s.Length > mostTime:
		return corral.Errorf(corral.Invalid, "the slot lasts %s, which is more than 30 years", s.Length)
	case s.Start%time.Millisecond != 0 || s.Length%time.Millisecond != 0:
		return corral.Errorf(corral.Invalid, "the slot's times are no whole milliseconds: %s for %s", s.Start, s.Length)
	case s.Processors < 1 || s.Processors > mostProcessors:
		return corral.Errorf(corral.Invalid, "the slot has %d processors, and 1 to %d are possible", s.Processors,
			mostProcessors)
	case s.Price < 0 || s.Fee < 0:
		return corral.Errorf(corral.Invalid, "the slot's price or fee is negative: %s, %s", s.Price, s.Fee)
	}
	return nil
}

// A Piece is what is taken of one of some slots.
type Piece struct {
	Slot       int // its index
	Start      time.Duration
	Length     time.Duration
	Processors int
}

// End is when the piece is free again.
func (p Piece) End() time.Duration { return p.Start + p.Length }

// Cost returns what a piece of the slot costs (Singh 2008, table 1): its processor time at the slot's price, and the
// fee. A piece that may not be taken is an error of kind Unsatisfiable that names the restriction.
func (s Slot) Cost(p Piece) (cost.Money, error) {
	if why := s.refuses(p); why != "" {
		return 0, corral.Errorf(corral.Unsatisfiable, "slot %d cannot be taken so: %s", p.Slot, why)
	}
	var b bill
	b.add(s.Price, int64(p.Processors)*p.Length.Milliseconds())
	return b.money().Plus(s.Fee), nil
}

// refuses names the restriction of table 1 that a piece breaks, by row; empty: none.
func (s Slot) refuses(p Piece) string {
	switch {
	case p.Processors < 1 || p.Length <= 0:
		return fmt.Sprintf("%d processors for %s are nothing", p.Processors, p.Length)
	case p.Processors > s.Processors:
		return fmt.Sprintf("it has %d processors of %d", s.Processors, p.Processors)
	case p.Start < s.Start:
		return fmt.Sprintf("it starts at %s, after %s", s.Start, p.Start)
	case !s.Extensible && p.End() > s.End():
		return fmt.Sprintf("it ends at %s, before %s, and is not extensible", s.End(), p.End())
	case s.Divisible:
		return ""
	case p.Processors < s.Processors:
		return fmt.Sprintf("it has %d processors, and less than all cannot be taken", s.Processors)
	case p.Start > s.Start:
		return fmt.Sprintf("it starts at %s, and cannot be taken from later on", s.Start)
	case p.End() < s.End():
		return fmt.Sprintf("it ends at %s, and cannot be taken for less", s.End())
	}
	return ""
}

// A bill adds up processor time at several prices, exactly: it is rounded once.
type bill struct{ high, low uint64 } // micro-units × milliseconds of a processor

// add adds so many milliseconds of a processor at a price per hour.
func (b *bill) add(price cost.Money, work int64) {
	high, low := bits.Mul64(uint64(price), uint64(work))
	var carry uint64
	b.low, carry = bits.Add64(b.low, low, 0)
	b.high, carry = bits.Add64(b.high, high, carry)
	if carry > 0 {
		b.high = math.MaxUint64
	}
}

// money is the sum, rounded half up; beyond the range it stays at its maximum.
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

// Charge returns what so many milliseconds of a processor cost at a price per hour, rounded half up.
func Charge(price cost.Money, work int64) cost.Money {
	var b bill
	b.add(price, work)
	return b.money()
}
