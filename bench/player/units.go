package main

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// seconds is a time since the beginning of the plan, or a duration, in nanoseconds. Documents write it as a number of
// seconds.
type seconds int64

const (
	second = seconds(time.Second)
	never  = seconds(math.MaxInt64 / 4) // later than every event; sums of a few do not overflow
)

// UnmarshalJSON reads a finite number of seconds to the microsecond; null counts as 0.
func (s *seconds) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Abs(v) > never.float() {
		return fmt.Errorf("%.40s is not a number of seconds in range", text)
	}
	*s = seconds(math.Round(v*1e6)) * seconds(time.Microsecond)
	return nil
}

// MarshalJSON writes seconds to the millisecond.
func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, s.milliseconds().float(), 'f', -1, 64), nil
}

// String formats s for the table, to tenths of a second.
func (s seconds) String() string { return time.Duration(s).Round(100 * time.Millisecond).String() }

func (s seconds) float() float64 { return float64(s) / float64(second) }

// milliseconds rounds s to whole milliseconds, the resolution of plans.
func (s seconds) milliseconds() seconds {
	return seconds(time.Duration(s).Round(time.Millisecond))
}

// times returns s × by in whole milliseconds.
func (s seconds) times(by float64) seconds {
	return seconds(math.Round(float64(s) * by)).milliseconds()
}

// money is an amount in millionths of a unit, so that sums are exact. Documents write it as a decimal number.
type money int64

const micro = 1_000_000 // of a unit

// An amount is money with its unit: ch (cpu-hours), SU or a currency.
type amount struct {
	Money money  `json:"amount"`
	Unit  string `json:"unit"`
}

// UnmarshalJSON reads a decimal number exactly; digits beyond the sixth are rounded off.
func (m *money) UnmarshalJSON(text []byte) error {
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return fmt.Errorf("%.40s is not an amount", text)
	}
	v, ok := rounded(r.Mul(r, big.NewRat(micro, 1)))
	if !ok {
		return fmt.Errorf("%.40s is too large an amount", text)
	}
	*m = v
	return nil
}

// MarshalJSON writes the decimal number without trailing zeros.
func (m money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

func (m money) String() string { return strconv.FormatFloat(float64(m)/micro, 'f', -1, 64) }

func (a amount) String() string { return a.Money.String() + a.Unit }

// rounded rounds a number half up; ok is false if it is out of range.
func rounded(r *big.Rat) (m money, ok bool) {
	twice := new(big.Int).Lsh(r.Num(), 1)
	twice.Add(twice, r.Denom())
	// ⌊(2·num + den) ÷ (2·den)⌋ is ⌊num ÷ den + ½⌋.
	quotient := new(big.Int).Div(twice, new(big.Int).Lsh(r.Denom(), 1)) // Div rounds down, also below 0
	return money(quotient.Int64()), quotient.IsInt64()
}

// charge returns the cost of holding hosts for some time. The billed time is at least the site's minimum and a whole
// number of its periods; a pilot that never started is free. The product is rounded once, half up.
func (s *site) charge(hosts, cpus int, held seconds) money {
	if held <= 0 {
		return 0
	}
	billed := max(held, s.Minimum)
	if s.Period > 0 {
		billed = (billed + s.Period - 1) / s.Period * s.Period
	}
	units := hosts * cpus
	if s.Per == "host-hour" {
		units = hosts
	}
	// The product of price, units and nanoseconds may exceed 64 bits.
	product := big.NewInt(int64(s.Price))
	product.Mul(product, big.NewInt(int64(units)))
	product.Mul(product, big.NewInt(int64(billed)))
	cost, ok := rounded(new(big.Rat).SetFrac(product, big.NewInt(3600*int64(second))))
	if !ok {
		return math.MaxInt64
	}
	return cost
}

// resources is the demand of a task, the size of a host, or the free part of one. Memory 0 of a host means that it is
// not limited.
type resources struct {
	CPUs      int `json:"cpus"`
	MemoryMiB int `json:"memory_mib"`
	GPUs      int `json:"gpus"`
}

// unlimited replaces an unknown maximum.
const unlimited = 1 << 40

// bounded returns r with unlimited memory if its memory is not known.
func (r resources) bounded() resources {
	if r.MemoryMiB == 0 {
		r.MemoryMiB = unlimited
	}
	return r
}

func (r resources) fitIn(o resources) bool {
	return r.CPUs <= o.CPUs && r.MemoryMiB <= o.MemoryMiB && r.GPUs <= o.GPUs
}

func (r resources) plus(o resources) resources {
	return resources{r.CPUs + o.CPUs, r.MemoryMiB + o.MemoryMiB, r.GPUs + o.GPUs}
}

func (r resources) minus(o resources) resources {
	return resources{r.CPUs - o.CPUs, r.MemoryMiB - o.MemoryMiB, r.GPUs - o.GPUs}
}

func (r resources) String() string {
	return fmt.Sprintf("%d cpus, %d MiB, %d gpus", r.CPUs, r.MemoryMiB, r.GPUs)
}

// dimensions is the number of components of resources.
const dimensions = 3

// dimensions returns the components of r, for bounds that treat all of them alike.
func (r resources) dimensions() [dimensions]int { return [...]int{r.CPUs, r.MemoryMiB, r.GPUs} }
