package main

// Parts of measurements: samples, processor time by the kind of process that used it, and spreads of figures. All of it
// is arithmetic. A figure is reported as median and range: with only a few rounds a mean is less useful, because a
// single disturbed round changes it.

import (
	"fmt"
	"slices"
	"time"
)

// A part is a kind of process that uses processor time for tasks.
type part int

const (
	partTasks   part = iota // the tasks themselves, from fork on
	partRunner              // the processes that start them: bare loops, workers
	partPilot               // the pilot that supervises the workers
	partCorrald             // queue, journal, API
	partSite                // the shells through which corrald asks the batch system
	parts
)

var partNames = [parts]string{
	"tasks (fork, exec, exit)", "bare loop / workers", "pilot", "corrald", "shells of the site",
}

// A cost is processor time by part.
type cost [parts]time.Duration

// sum returns the total of all parts.
func (c cost) sum() (sum time.Duration) {
	for _, d := range c {
		sum += d
	}
	return sum
}

// minus returns the processor time used since before.
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

// rate returns tasks per second.
func (s sample) rate() float64 { return float64(s.tasks) / s.span.Seconds() }

// each returns the share of d for each task.
func (s sample) each(d time.Duration) time.Duration {
	return (d / time.Duration(s.tasks)).Round(time.Microsecond)
}

// A spread contains several measurements of the same quantity.
type spread []float64

// sorted returns a copy in ascending order.
func (s spread) sorted() spread { return slices.Sorted(slices.Values(s)) }

// median returns the middle value, or the mean of the two middle values if their number is even. There must be at least
// one.
func (s spread) median() float64 {
	v := s.sorted()
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// row returns median and range as cells of a table; format formats a single value.
func (s spread) row(format string) []string {
	v := s.sorted()
	return []string{fmt.Sprintf(format, s.median()), fmt.Sprintf(format+"–"+format, v[0], v[len(v)-1])}
}
