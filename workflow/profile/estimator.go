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

// estimates holds the model of a class and the distribution of its residuals.
type estimates struct {
	class     *Class
	line      line
	residuals []float64 // actual ÷ estimate of equally likely outcomes, ascending; never empty
	spread    Stat      // summary of the residuals
}

// NewEstimator fits a model to each class of p. If speeds is not nil, runtimes are first normalised to the reference
// host, and an estimate applies to the task's type of host. If speeds is nil, runtimes are used as they were measured.
// Memory and bytes do not depend on the host.
//
// The models are the mean, the median and two models that depend on the input size. They are compared by estimating
// each run from the others; a model that depends on the input size is chosen only if its error is smaller than that of
// the mean by at least a tenth. Validate computes the remaining error. Models are fitted to the kept samples; a class
// without samples, such as a class read from CSV, is estimated by its mean.
func NewEstimator(p *Profile, speeds Speeds) *Estimator {
	e := &Estimator{classes: make(map[classKey]*estimates), speeds: speeds}
	for _, c := range p.Classes() {
		e.add(c)
		if c.Level != AllLevels && e.classes[classKey{c.Transformation, AllLevels}] == nil {
			e.add(pooled(p.kinds[c.Transformation])) // for tasks at levels that are not in the profile
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
		x.residuals = lognormal(s.cv())
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

// points returns the kept samples with a measured runtime, normalised by speeds.
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

// outcomes is the number of equally likely outcomes that represent a distribution if only its mean and sd are known.
const outcomes = 1000

// lognormal returns equally likely outcomes of a lognormal distribution with mean 1 and coefficient of variation cv,
// which is only approximate because both tails are cut off. Runtimes are positive and skewed to the right; a normal
// distribution would yield negative runtimes if the sd is close to the mean.
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
	Point   time.Duration // the estimate of the model that was closest in validation
	Mean    time.Duration // mean of the outcomes; differs from Point if the model is the median
	SD      time.Duration // standard deviation of the outcomes
	Model   Model
	Level   int   // level of the class used; AllLevels if the profile is not divided by level or lacks the level
	Samples int64 // the number of tasks on which the estimate is based

	MemoryBytes  int64 // memory to plan for: maximum or, if unknown, mean + 3 sd; 0: not known
	CPUs         int   // the number of cpus that the task keeps busy, at least 1
	ReadBytes    int64 // mean; 0: none, or not known
	WrittenBytes int64 // mean; 0: none, or not known

	scale     float64 // seconds for a residual of 1
	residuals []float64
}

// Estimate estimates a task. input is the total size of the task's input files; a negative value means that the size is
// not known. ok is false if the profile contains no runtime for the transformation.
func (e *Estimator) Estimate(t Subject, input int64) (x Estimate, ok bool) {
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

// Errors returns the distribution of runtime ÷ estimate of a transformation's tasks at all levels, as equally likely
// ratios in ascending order, and the number of runtimes on which it is based. Without runtimes it returns none.
func (e *Estimator) Errors(transformation string) (ratios []float64, runtimes int64) {
	for key, x := range e.classes {
		if key.transformation == transformation && key.level != AllLevels {
			ratios, runtimes = append(ratios, x.residuals...), runtimes+x.class.stats[Runtime].Count
		}
	}
	if whole := e.classes[classKey{transformation, AllLevels}]; whole != nil && runtimes == 0 {
		ratios, runtimes = slices.Clone(whole.residuals), whole.class.stats[Runtime].Count
	}
	slices.Sort(ratios)
	return ratios, runtimes
}

// Quantile returns the runtime that a fraction q, from 0 to 1, of the outcomes does not exceed.
func (x Estimate) Quantile(q float64) time.Duration {
	if len(x.residuals) == 0 {
		return x.Point
	}
	return seconds(x.scale * quantile(x.residuals, q))
}

// Draw returns one outcome, i.e. a possible runtime of the task. u must be at least 0 and less than 1. Equal values of
// u yield equal outcomes, and uniformly distributed values of u yield outcomes that are distributed like the measured
// runtimes. The caller determines u, for example from the id of the task.
func (x Estimate) Draw(u float64) time.Duration {
	n := len(x.residuals)
	if n == 0 {
		return x.Point
	}
	return seconds(x.scale * x.residuals[max(0, min(n-1, int(u*float64(n))))])
}

// peak returns the memory to plan for, which is the maximum. If plans used the mean, every task above it would fail:
// SeisSynth of CyberShake needs 817 MB on average and 1,870 MB at most. If the maximum is not known, peak returns mean
// + 3 sd, which at most one task in ten exceeds, whatever the distribution (Cantelli's inequality).
func (c *Class) peak() int64 {
	s := c.stats[Memory]
	if s.Ranged {
		return round(s.Max)
	}
	return round(math.Ceil(s.Mean + 3*s.SD))
}

// slack is the amount by which a utilization may exceed a whole number of cpus without counting as another cpu: cpu
// clocks advance in ticks, so the cpu time of short tasks may be rounded up.
const slack = 0.05

// cpus returns the number of cpus that a task keeps busy: 2 for a task that uses 153 % of a cpu.
func (c *Class) cpus() int {
	return max(1, int(math.Ceil(min(c.stats[Utilization].Mean, math.MaxInt32)-slack)))
}

// seconds converts a number of seconds to the nearest duration that can be represented.
func seconds(s float64) time.Duration {
	return time.Duration(round(s * float64(time.Second)))
}

// round returns the nearest whole number that an int64 can represent.
func round(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(v))
}
