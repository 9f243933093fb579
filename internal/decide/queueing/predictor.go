package queueing

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Predictor returns the probability that a pilot submitted now starts in time (the question of Nurmi, Brevik and
// Wolski, QBETS; Singh 2008, equation 21). It provides two values: an estimate, which is correct on average, and a
// bound, which is conservative.
//
// The estimate is the share of the latest waits of like pilots that were short enough, using Kaplan and Meier's method
// for pilots that did not start. If none of them started, the waits provide information only about times for which a
// pilot waited in vain. Pilots are alike if their numbers of cpus lie between the same powers of two, and their
// walltimes between the same powers of four minutes. A larger or longer pilot is never predicted to start earlier: if a
// few waits suggest otherwise, the estimates are smoothed by isotonic regression.
type Predictor struct {
	waits   []corral.Wait // in the order of submission
	now     time.Time
	classes [][]likes // :: class of cpus → class of walltimes
}

// likes holds the waits of like pilots.
type likes struct {
	waits   int
	started []step          // in the order of time
	vain    []time.Duration // if none started: the time that each waited, in ascending order
}

// A step is a wait, and the share of pilots that had started by then.
type step struct {
	wait  time.Duration
	share float64
}

// likeWindow is the number of latest waits of like pilots that the estimate uses. Like the classes, it was chosen on
// the first half of a simulated trace; bench/slots checks it on the second half.
const likeWindow = 200

// The classes: up to 2^20 cpus, and 4^11 minutes.
const (
	cpuClasses  = 21
	timeClasses = 12
)

// NewPredictor creates a Predictor from waits, in the order of their submission. Pilots that had not started by now
// count as waits that may become longer. waits must not contain submissions after now.
func NewPredictor(waits []corral.Wait, now time.Time) *Predictor {
	p := &Predictor{waits: waits, now: now, classes: make([][]likes, cpuClasses)}
	groups := make([][][]corral.Wait, cpuClasses)
	for i := range groups {
		groups[i], p.classes[i] = make([][]corral.Wait, timeClasses), make([]likes, timeClasses)
	}
	for _, w := range slices.Backward(waits) {
		a, b := class(w.Hosts*w.CPUs, time.Duration(w.Walltime))
		if len(groups[a][b]) < likeWindow && !w.Unseen() {
			groups[a][b] = append(groups[a][b], w)
		}
	}
	for a := range groups {
		for b, group := range groups[a] {
			p.classes[a][b] = likesOf(sorted(group, now))
		}
	}
	return p
}

func likesOf(spans []span) likes {
	l := likes{waits: len(spans), started: steps(spans)}
	for _, s := range spans {
		if len(l.started) == 0 {
			l.vain = append(l.vain, s.d)
		}
	}
	return l
}

// says returns the number of waits that provide information about a start within a time. If none of the like pilots
// started, this number can only decrease with more time, so that estimates grow with time.
func (l likes) says(within time.Duration) int {
	i, _ := slices.BinarySearch(l.vain, within)
	return len(l.started) + len(l.vain) - i
}

// class returns the class of a pilot with this number of cpus and walltime.
func class(cpus int, walltime time.Duration) (a, b int) {
	return min(bits.Len(uint(max(1, cpus)))-1, cpuClasses-1), timeClass(walltime)
}

func timeClass(walltime time.Duration) int {
	minutes := uint64(max(1, walltime/time.Minute))
	return min((bits.Len64(minutes)-1)/2, timeClasses-1)
}

// steps returns the product-limit estimate of the share that has started, from sorted spans.
func steps(spans []span) (all []step) {
	waiting := 1.0
	for i, s := range spans {
		if left := float64(len(spans) - i); !s.censored {
			waiting *= (left - 1) / left
			all = append(all, step{s.d, 1 - waiting})
		}
	}
	return all
}

// within returns the share of pilots that start within d.
func (l likes) within(d time.Duration) float64 {
	i, _ := slices.BinarySearchFunc(l.started, d, func(s step, d time.Duration) int {
		if s.wait <= d {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return l.started[i-1].share
}

// A Prediction is the probability that a pilot starts in time.
type Prediction struct {
	Estimate float64 // correct on average
	Known    bool    // some wait provides information; otherwise the estimate is 0
	Bound    float64 // lower bound, valid in 95 % of cases, at most the estimate; 0: too few waits are known
	Waits    int     // like pilots on which the estimate is based, at most the latest 200; 0: based on others
}

// Predict returns the probability that a pilot with this number of cpus and walltime, submitted now, starts within
// the given time.
func (p *Predictor) Predict(cpus int, walltime, within time.Duration) Prediction {
	a, b := class(cpus, walltime)
	share, known := p.estimate(a, b, within)
	return Prediction{share, known, min(share, p.bound(cpus, walltime, within)), p.classes[a][b].waits}
}

// Estimate returns only Predict's estimate, and whether it is known.
func (p *Predictor) Estimate(cpus int, walltime, within time.Duration) (share float64, known bool) {
	a, b := class(cpus, walltime)
	return p.estimate(a, b, within)
}

// estimate smooths the shares for the given time over all classes with known waits: the result for a class is the
// maximum, over all classes that are no smaller and no shorter, of the minimum of the means between such a class and a
// class that is no larger and no longer. That is the max-min formula of isotonic regression (Robertson, Wright and
// Dykstra, Order restricted statistical inference, 1988, theorem 1.4.4) with rectangles as its sets, so that
// constraints between distant classes also count, and an estimate decreases neither with time nor when a wait in vain
// stops being informative.
func (p *Predictor) estimate(a, b int, within time.Duration) (share float64, known bool) {
	var weights, started [cpuClasses + 1][timeClasses + 1]float64 // sums over all classes before one in both respects
	for i := range p.classes {
		for j, l := range p.classes[i] {
			n := float64(l.says(within))
			weights[i+1][j+1] = n + weights[i][j+1] + weights[i+1][j] - weights[i][j]
			started[i+1][j+1] = n*l.within(within) + started[i][j+1] + started[i+1][j] - started[i][j]
		}
	}
	between := func(in *[cpuClasses + 1][timeClasses + 1]float64, i, j, k, l int) float64 {
		return in[k+1][l+1] - in[i][l+1] - in[k+1][j] + in[i][j]
	}
	for k := a; k < cpuClasses; k++ {
		for l := b; l < timeClasses; l++ {
			least := math.Inf(1)
			for i := range a + 1 {
				for j := range b + 1 {
					if n := between(&weights, i, j, k, l); n > 0 { // sums of integers are exact
						least = min(least, between(&started, i, j, k, l)/n)
					}
				}
			}
			if !math.IsInf(least, 1) {
				share, known = max(share, least), true
			}
		}
	}
	return min(1, math.Round(share*1e9)/1e9), known // sums of floats differ in their last digits
}

// boundShares lists the shares for which a bound is computed, the largest first.
var boundShares = []float64{0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}

// bound returns the largest share whose bound is within a time, based on pilots with half to twice as many cpus and
// similar walltimes.
func (p *Predictor) bound(cpus int, walltime, within time.Duration) float64 {
	like := slices.DeleteFunc(Near(cpus, p.waits), func(w corral.Wait) bool {
		return timeClass(time.Duration(w.Walltime)) != timeClass(walltime)
	})
	for _, share := range boundShares {
		if q := Bound(like, share, p.now); !q.AtLeast && time.Duration(q.Wait) <= within {
			return share
		}
	}
	return 0
}
