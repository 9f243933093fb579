package cost

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// Money is an amount in micro-units: millionths of a dollar, of a cpu-hour, or of any other unit that accompanies the
// amount.
type Money int64

const (
	micro  = 1_000_000
	digits = 6 // decimal digits of a micro-unit
)

// A Unit is the unit of an amount: ch (cpu-hours), SU (service units, as the site counts them) or a currency, given by
// its ISO 4217 code of three capital letters.
type Unit string

// The units other than currencies.
const (
	CPUHours     Unit = "ch"
	ServiceUnits Unit = "SU"
)

// An Amount is money with its unit, such as a budget.
type Amount struct {
	Money Money `json:"amount"`
	Unit  Unit  `json:"unit"`
}

// MarshalJSON writes m as a decimal number, exactly.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON parses the output of MarshalJSON.
func (m *Money) UnmarshalJSON(text []byte) (err error) {
	if number, negative := strings.CutPrefix(string(text), "-"); negative {
		*m, err = parseMoney(number)
		*m = -*m
		return err
	}
	*m, err = parseMoney(string(text))
	return err
}

// ParseAmount parses a decimal number directly followed by a unit: 40ch, 12USD, 500SU, 0.5EUR. Errors are of kind
// Invalid and name the valid units.
func ParseAmount(s string) (Amount, error) {
	number, unit := cutUnit(s)
	m, err := parseMoney(number)
	if err == nil {
		err = unit.check()
	}
	if err != nil {
		err = corral.Errorf(corral.Invalid, "%.40q is not an amount such as 40ch, 12USD or 500SU: %w", s, err)
		return Amount{}, err
	}
	return Amount{m, unit}, nil
}

// cutUnit splits "12USD" before the letters at its end.
func cutUnit(s string) (number string, unit Unit) {
	number = strings.TrimRight(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	return number, Unit(s[len(number):])
}

func (u Unit) check() error {
	currency := len(u) == 3 && strings.Trim(string(u), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	if currency || u == CPUHours || u == ServiceUnits {
		return nil
	}
	return fmt.Errorf("unit %.40q must be %s (cpu-hours), %s (service units), or a currency such as USD or EUR",
		string(u), CPUHours, ServiceUnits)
}

// parseMoney parses a non-negative decimal number exactly; it may have at most six decimal places.
func parseMoney(s string) (Money, error) {
	whole, part, point := strings.Cut(s, ".")
	if s == "" {
		return 0, errors.New("it does not begin with a decimal number")
	}
	if s[0] == '-' {
		return 0, fmt.Errorf("%.40q is negative", s)
	}
	if whole == "" || point && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, fmt.Errorf("%.40q is not a decimal number", s)
	}
	if len(part) > digits {
		return 0, fmt.Errorf("%.40q has more than %d decimal places", s, digits)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is too large", s)
	}
	return Money(n), nil
}

// String formats a in the syntax of ParseAmount.
func (a Amount) String() string { return a.Money.String() + string(a.Unit) }

// Brief formats a for display like String, but with three decimal places, which are enough to distinguish plans that
// take minutes. Amounts below 0.1, as in plans that take seconds, get all digits.
func (a Amount) Brief() string {
	if a.Money.Units() < 0.1 {
		return a.String()
	}
	return trimmed(a.Money.Round(3)) + string(a.Unit)
}

// String formats m with all its digits.
func (m Money) String() string {
	return trimmed(m.Round(digits))
}

// trimmed removes trailing zeros of a decimal fraction.
func trimmed(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// Round formats m with the given number of decimal places, 0 to 6. It rounds the magnitude half up.
func (m Money) Round(places int) string {
	places = min(max(places, 0), digits)
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	unit := uint64(1)
	for range digits - places {
		unit *= 10
	}
	n = (n + unit/2) / unit // cannot overflow: n is below 2⁶³
	if places == 0 {
		return sign + strconv.FormatUint(n, 10)
	}
	text := fmt.Sprintf("%0*d", places+1, n)
	return sign + text[:len(text)-places] + "." + text[len(text)-places:]
}

// Plus returns the sum of two amounts in the same unit. Sums saturate at the ends of the range.
func (m Money) Plus(o Money) Money {
	switch {
	case o > 0 && m > math.MaxInt64-o:
		return math.MaxInt64
	case o < 0 && m < math.MinInt64-o:
		return math.MinInt64
	}
	return m + o
}

// Units returns m as a floating-point number of units, for charts and ratios; it is not exact.
func (m Money) Units() float64 { return float64(m) / micro }

// scale returns m × times ÷ over, rounded half up once. m and times must not be negative, and over must be positive.
// Products saturate at the maximum.
func scale(m Money, times, over []int64) Money {
	product, quick := uint64(m), true
	for _, n := range times {
		var high uint64
		high, product = bits.Mul64(product, uint64(n))
		quick = quick && high == 0
	}
	if quick && len(over) == 1 {
		q, r := product/uint64(over[0]), product%uint64(over[0])
		if r >= uint64(over[0])-r {
			q++
		}
		return Money(min(q, math.MaxInt64))
	}
	num, den := big.NewInt(int64(m)), big.NewInt(1)
	for _, n := range times {
		num.Mul(num, big.NewInt(n))
	}
	for _, n := range over {
		den.Mul(den, big.NewInt(n))
	}
	num.Add(num.Lsh(num, 1), den) // (2·num + den) ÷ (2·den) is num ÷ den + ½; its integer part is the result
	num.Quo(num, den.Lsh(den, 1))
	if !num.IsInt64() {
		return math.MaxInt64
	}
	return Money(num.Int64())
}
