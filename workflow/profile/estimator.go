package profile

import (
	"math"
	"slices"
	"time"
)

// An Estimator estimates tasks from a profile. It is immutable and can be shared.
type Estimator struct {
	classes map[classKey]*estimates // always includes AllLevels
	speeds  Speeds
}

type classKey struct {
	transformation string
	level          int
}

// estimates is an Estimator's knowledge about a class.
type estimates struct {
	class     *Class
	line      line
	residuals []float64 // actual ÷ estimate of equally likely outcomes, ascending; never empty
	spread    Stat      // of the residuals
}

// NewEstimator fits a model to each class of p. If speeds is not nil, runtimes are first normalised to the reference
// host, and an estimate is for the type of host of the task. If it is nil, runtimes are used as they were measured.
// Memory and bytes do not depend on the host.
//
// The models are the mean, the median and two that depend on the input size. They are compared by estimating each run
// from the others; a model of the input size must be better than the mean by a tenth. Validate computes the remaining
// error. Models are fitted to the samples that were kept; a class without any, such as one read from CSV, is estimated
// by its mean.
func NewEstimator(p *Profile, speeds Speeds) *Estimator {
	e := &Estimator{classes: make(map[classKey]*estimates), speeds: speeds}
	for _, c := range p.Classes() {
		e.add(c)
		if c.Level != AllLevels && e.classes[classKey{c.Transformation, AllLevels}] == nil {
			e.add(pooled(p.kinds[c.Transformation])) // for levels that are not in the profile
		}
	}
	return e
}

func (e *Estimator) add(c *Class) {
	if c.stats[Runtime].Count > 0 {
		e.classes[classKey{c.Transformation, c.Level}] = newEstimates(c, e.speeds)
	}
}

func newEstimates(c *Class, speeds Speeds) *estimates {
	x := &estimates{class: c}
	points := c.points(speeds)
	if len(points) == 0 { // only a summary is known, as from a published table
		s := c.stats[Runtime]
		x.line = line{model: Mean, a: s.Mean, fallback: s.Mean}
		x.residuals = lognormal(s.CV())
	} else {
		x.line = learn(points)
		for _, p := range points {
			if estimate := x.line.at(p.input, p.known); estimate > 0 {
				x.residuals = append(x.residuals, p.runtime/estimate)
			}
		}
	}
	if len(x.residuals) == 0 { // every runtime is 0
		x.residuals = []float64{1}
	}
	slices.Sort(x.residuals)
	for _, r := range x.residuals {
		x.spread = x.spread.with(r)
	}
	return x
}

// points returns the kept samples that have a runtime.
func (c *Class) points(speeds Speeds) []point {
	c.trim()
	var points []point
	for _, s := range c.kept {
		if runtime, ok := s.Values.Get(Runtime); ok {
			size, known := s.Values.Get(Input)
			points = append(points, point{s.Run, size, known, runtime * speeds.of(s.Host)})
		}
	}
	return points
}

// outcomes is the number of equally likely outcomes that represent a distribution of which only mean and sd are known.
const outcomes = 1000

// lognormal returns outcomes with mean 1 and coefficient of variation cv, apart from the cut at both ends. Runtimes are
// positive and skewed to the right; a normal distribution would give negative ones where the sd is near the mean.
func lognormal(cv float64) []float64 {
	if cv == 0 {
		return []float64{1}
	}
	sigma := math.Sqrt(math.Log1p(cv * cv))
	all := make([]float64, outcomes)
	var sum float64
	for i := range all {
		u := (float64(i) + 0.5) / outcomes
		all[i] = math.Exp(sigma * math.Sqrt2 * math.Erfinv(2*u-1))
		sum += all[i]
	}
	for i := range all {
		all[i] *= outcomes / sum
	}
	return all
}

// An Estimate is the expected behaviour of a task.
type Estimate struct {
	Point   time.Duration // the estimate of the model: the value that was closest in validation
	Mean    time.Duration // the mean of the outcomes; it differs from Point if the model is the median
	SD      time.Duration // of the outcomes
	Model   Model
	Level   int   // of the class used; AllLevels if the profile is not divided by level or does not have the level
	Samples int64 // the number of tasks that the estimate is based on

	MemoryBytes  int64 // to plan with: the largest, or mean + 3 sd if the largest is not known; 0: not known
	CPUs         int   // the number of cpus that the task keeps busy, at least 1
	ReadBytes    int64 // mean; 0: none, or not known
	WrittenBytes int64 // mean; 0: none, or not known

	scale     float64 // seconds for a residual of 1
	residuals []float64
}

// Estimate estimates a task. input is the size of its input files; a negative size means that it is not known. ok is
// false if the profile has no runtime of the transformation.
func (e *Estimator) Estimate(t Task, input int64) (x Estimate, ok bool) {
	known := e.classes[classKey{t.Transformation, t.Level}]
	if known == nil {
		known = e.classes[classKey{t.Transformation, AllLevels}]
	}
	if known == nil {
		return Estimate{}, false
	}
	c := known.class
	scale := known.line.at(float64(max(input, 0)), input >= 0) / e.speeds.of(t.Host)
	return Estimate{
		Point: seconds(scale), Mean: seconds(scale * known.spread.Mean), SD: seconds(scale * known.spread.SD),
		Model: known.line.model, Level: c.Level, Samples: c.stats[Runtime].Count,
		MemoryBytes: c.peak(), CPUs: c.cpus(),
		ReadBytes: round(c.stats[Read].Mean), WrittenBytes: round(c.stats[Written].Mean),
		scale: scale, residuals: known.residuals,
	}, true
}

// Quantile returns the runtime that a fraction q of the outcomes does not exceed, for q from 0 to 1.
func (x Estimate) Quantile(q float64) time.Duration {
	if len(x.residuals) == 0 {
		return x.Point
	}
	return seconds(x.scale * quantile(x.residuals, q))
}

// Draw returns one outcome: a runtime that the task may turn out to have. u is at least 0 and less than 1. Equal u give
// equal outcomes, and uniformly drawn u give outcomes distributed as they were measured. The caller draws u, for
// example from the id of the task.
func (x Estimate) Draw(u float64) time.Duration {
	n := len(x.residuals)
	if n == 0 {
		return x.Point
	}
	return seconds(x.scale * x.residuals[max(0, min(n-1, int(u*float64(n))))])
}

// peak returns the memory to plan with. If the mean were planned, every task above it would fail: SeisSynth of
// CyberShake needs 817 MB on average and 1,870 MB at most. If the largest value is not known, peak uses mean + 3 sd,
// which at most one task in ten exceeds, whatever the distribution (Cantelli's inequality).
func (c *Class) peak() int64 {
	s := c.stats[Memory]
	if s.Ranged {
		return round(s.Max)
	}
	return round(math.Ceil(s.Mean + 3*s.SD))
}

// slack is by how much a utilization may exceed a whole number of cpus, because cpu clocks tick and short tasks round
// up.
const slack = 0.05

// cpus returns how many cpus a task keeps busy: 2 for one that uses 153 %.
func (c *Class) cpus() int {
	return max(1, int(math.Ceil(min(c.stats[Utilization].Mean, math.MaxInt32)-slack)))
}

// seconds converts to the nearest duration that can be represented.
func seconds(s float64) time.Duration {
	return time.Duration(round(s * float64(time.Second)))
}

// round converts to the nearest whole number that an int64 can hold.
func round(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(v))
}
