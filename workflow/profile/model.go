package profile

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A Model determines how the runtime of a task of a class is estimated.
type Model string

// These are the models. Proportional and Linear depend on the input size, i.e. the total size of the task's input
// files.
const (
	Mean         Model = "mean"         // of the runtimes
	Median       Model = "median"       // of the runtimes
	Proportional Model = "proportional" // proportional to the input size
	Linear       Model = "linear"       // regression on the input size, by least squares
)

// Models lists the models; if two of them are equally good, the earlier one is chosen.
var Models = [...]Model{Mean, Median, Proportional, Linear}

// guard is the fraction by which the error of a model that depends on the input size must be smaller than the error of
// the mean for the model to be chosen. A regression that is better only by chance extrapolates badly. Results hardly
// differ for guards from 3 to 20 %.
const guard = 0.10

// A point holds the properties of a measured task that models use.
type point struct {
	run     string
	input   float64 // bytes
	known   bool    // whether the input size is known
	runtime float64 // seconds, on the reference host
}

// A line estimates the runtime as a + b·input, but at least as floor, because a regression can be negative for inputs
// outside the measured range, whereas a runtime cannot. The floor of a regression is the shortest runtime. The floor of
// the other models is a thousandth of the mean, so that an estimate is 0 only if every runtime was 0.
type line struct {
	model    Model
	a, b     float64
	floor    float64
	fallback float64 // estimate for tasks whose input size is not known: the mean
}

func (l line) at(input float64, known bool) float64 {
	if l.b != 0 && !known {
		return l.fallback
	}
	return max(l.floor, l.a+l.b*input)
}

// fit fits a model to points, which must not be empty; ok is false if the model cannot be fitted to these points.
func fit(m Model, points []point) (l line, ok bool) {
	n := float64(len(points))
	var runtime, input float64
	least, complete := math.Inf(1), true
	for _, p := range points {
		runtime += p.runtime / n
		input += p.input / n
		least = min(least, p.runtime)
		complete = complete && p.known
	}
	l = line{model: m, a: runtime, floor: runtime / 1000, fallback: runtime}
	switch m {
	case Median:
		runtimes := make([]float64, len(points))
		for i, p := range points {
			runtimes[i] = p.runtime
		}
		slices.Sort(runtimes)
		l.a = quantile(runtimes, 0.5)
	case Proportional:
		if !complete || input == 0 {
			return line{}, false
		}
		l.a, l.b = 0, runtime/input
	case Linear:
		var xx, xy float64
		for _, p := range points {
			xx += (p.input - input) * (p.input - input)
			xy += (p.input - input) * (p.runtime - runtime)
		}
		if !complete || len(points) < 3 || xx <= 0 {
			return line{}, false
		}
		l.b = xy / xx
		l.a = runtime - l.b*input
		l.floor = max(l.floor, least)
	}
	return l, true
}

// maxFolds limits the work of a cross-validation: if the number of runs exceeds it, several runs are left out together.
const maxFolds = 32

// folds divides points into folds by run. Runs are assigned to the folds in turn, in the order of their names.
func folds(points []point) [][]point {
	byRun := make(map[string][]point)
	for _, p := range points {
		byRun[p.run] = append(byRun[p.run], p)
	}
	all := make([][]point, min(len(byRun), maxFolds))
	for i, run := range slices.Sorted(maps.Keys(byRun)) {
		all[i%len(all)] = append(all[i%len(all)], byRun[run]...)
	}
	return all
}

// without returns the points of all folds except the one with index left.
func without(folds [][]point, left int) []point {
	return slices.Concat(slices.Concat(folds[:left]...), slices.Concat(folds[left+1:]...))
}

// choose returns the model with the smallest error when each run is estimated from the others. The error of a run is
// the sum of |actual − estimate| over its tasks divided by the sum of their runtimes, so that all runs have equal
// weight. If errors were in seconds, a single run on a large input would determine the model. With fewer than two runs,
// choose returns the mean.
func choose(folds [][]point) Model {
	if len(folds) < 2 {
		return Mean
	}
	errors := make(map[Model]float64)
	for left, actual := range folds {
		rest := without(folds, left)
		mean, _ := fit(Mean, rest)
		for _, m := range Models {
			l, ok := fit(m, rest)
			if !ok {
				l = mean
			}
			wrong, sum := misses(l, actual)
			errors[m] += wrong / cmp.Or(sum, 1)
		}
	}
	best := Mean
	for _, m := range Models {
		limit := errors[best]
		if m == Proportional || m == Linear {
			limit = min(limit, errors[Mean]*(1-guard))
		}
		if errors[m] < limit {
			best = m
		}
	}
	return best
}

// misses returns the sum of |actual − estimate| and the sum of the runtimes, in seconds.
func misses(l line, points []point) (wrong, sum float64) {
	for _, p := range points {
		wrong += math.Abs(p.runtime - l.at(p.input, p.known))
		sum += p.runtime
	}
	return wrong, sum
}

// learn chooses a model for points, which must not be empty, and fits the model to them.
func learn(points []point) line {
	if l, ok := fit(choose(folds(points)), points); ok {
		return l
	}
	l, _ := fit(Mean, points)
	return l
}
