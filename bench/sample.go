package main

// What measurements are made of: samples, processor time by the kind of process that used it, and spreads of figures.
// All of it is arithmetic. A figure is reported as median and range: with a handful of rounds a mean says less, since
// one round that something else has disturbed moves it.

import (
	"fmt"
	"slices"
	"time"
)

// A part is one kind of process that spends processor time on tasks.
type part int

const (
	partTasks   part = iota // the tasks themselves, from fork on
	partRunner              // what starts them: bare loops, workers
	partPilot               // the pilot that watches over the workers
	partCorrald             // queue, journal, API
	partSite                // what corrald asks the batch system through
	parts
)

var partNames = [parts]string{
	"tasks (fork, exec, exit)", "bare loop / workers", "pilot", "corrald", "shells of the site",
}

// A cost is processor time by part.
type cost [parts]time.Duration

// sum is what all parts spent together.
func (c cost) sum() (sum time.Duration) {
	for _, d := range c {
		sum += d
	}
	return sum
}

// minus returns what was spent since before.
func (c cost) minus(before cost) cost {
	for i := range c {
		c[i] -= before[i]
	}
	return c
}

// A sample is one measurement.
type sample struct {
	tasks int
	span  time.Duration // from the start of the first task to the end of the last
	cost  cost
}

// rate is tasks per second.
func (s sample) rate() float64 { return float64(s.tasks) / s.span.Seconds() }

// each is a share of d for each task.
func (s sample) each(d time.Duration) time.Duration {
	return (d / time.Duration(s.tasks)).Round(time.Microsecond)
}

// A spread is the same thing measured several times.
type spread []float64

// sorted is a copy in ascending order.
func (s spread) sorted() spread { return slices.Sorted(slices.Values(s)) }

// median is the middle value, the mean of the two of them if their number is even. There must be at least one.
func (s spread) median() float64 {
	v := s.sorted()
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// row returns median and range as the cells of a table; format is that of one value.
func (s spread) row(format string) []string {
	v := s.sorted()
	return []string{fmt.Sprintf(format, s.median()), fmt.Sprintf(format+"–"+format, v[0], v[len(v)-1])}
}
