package plot

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"

	"github.com/corral-pilot/corral"
)

// A scale is the unit of an axis, by which values are divided.
type scale struct {
	one  float64
	name string
}

// of returns a time in units of the scale.
func (s scale) of(d corral.Seconds) float64 { return time.Duration(d).Seconds() / s.one }

// times returns the unit in which times up to d have few digits.
func times(d corral.Seconds) scale {
	switch t := time.Duration(d); {
	case t < 3*time.Minute:
		return scale{1, "s"}
	case t < 3*time.Hour:
		return scale{60, "min"}
	case t < 4*24*time.Hour:
		return scale{3600, "h"}
	}
	return scale{24 * 3600, "days"}
}

// Times returns the unit, in seconds and by name, in which times up to d have few digits.
func Times(d corral.Seconds) (one float64, name string) {
	s := times(d)
	return s.one, s.name
}

// coreTimes returns the unit in which core-hours up to most have few digits.
func coreTimes(most float64) scale {
	switch {
	case most < 2./60:
		return scale{1. / 3600, "core-seconds"}
	case most < 2:
		return scale{1. / 60, "core-minutes"}
	}
	return scale{1, "core-hours"}
}

// ticks places ticks at multiples of 1, 2 or 5 times a power of ten, so that there are few ticks and they are at least
// least apart.
type ticks struct{ least float64 }

// mostTicks is the maximum number of labels that fit beside an axis.
const mostTicks = 8

// Ticks implements plot.Ticker.
func (t ticks) Ticks(from, to float64) (all []plot.Tick) {
	step := t.step(to - from)
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	for k := math.Ceil(from/step - 1e-9); k*step <= to+1e-9*step; k++ {
		value := k*step + 0 // never −0
		all = append(all, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', digits, 64)})
	}
	return all
}

// step returns the distance between ticks on an axis of a given length.
func (t ticks) step(length float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(length, 1e-9)/mostTicks)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step := times * power; length/step <= mostTicks && step >= t.least {
			return step
		}
	}
	return max(t.least, 10*power)
}
