package corral

import "time"

// A Speed is the speed of hosts relative to the hosts to which the tasks' estimates refer, the fastest ones of a plan:
// a task takes its estimate ÷ Speed. It is at most 1; 0 means 1.
type Speed float64

// one reports whether tasks take their estimates.
func (s Speed) one() bool { return s == 0 || s == 1 }

// slowest is the least speed: slower hosts are of no use, and times remain within a Duration.
const slowest = 0.001

// Valid reports whether s is a speed.
func (s Speed) Valid() bool { return s == 0 || s >= slowest && s <= 1 }

// Factor returns the speed as a number greater than 0.
func (s Speed) Factor() float64 {
	if s == 0 {
		return 1
	}
	return float64(s)
}

// Takes returns how long a task with the given estimate takes, in whole milliseconds unless the speed is 1.
func (s Speed) Takes(estimate time.Duration) time.Duration {
	if s.one() {
		return estimate
	}
	return time.Duration(float64(estimate) / float64(s)).Round(time.Millisecond)
}

// Within returns the longest estimate of a task that takes at most the given time: an estimate in whole milliseconds is
// at most Within(left) exactly if Takes of it is at most left.
func (s Speed) Within(left time.Duration) time.Duration {
	if s.one() || left < 0 {
		return left
	}
	return time.Duration(float64(s) * (float64(left.Truncate(time.Millisecond)) + float64(time.Millisecond/2)))
}

// Estimate returns the estimate of a task that took the given time, in whole milliseconds unless the speed is 1.
func (s Speed) Estimate(took time.Duration) time.Duration {
	if s.one() {
		return took
	}
	return time.Duration(float64(took) * float64(s)).Round(time.Millisecond)
}
