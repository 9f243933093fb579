package sim

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/chance"
)

// An Error returns the ratio of the runtime to the estimate of the task with the given index. The ratio is the same for
// all attempts of a task.
type Error func(task int) float64

// Uniform returns errors of up to the share p in either direction: actual = estimate × (1 + q), where q is uniform in
// (−p, p), as in Juve 2012, chapter 6 (see package plan/ensemble). Such errors cancel out over many tasks.
func Uniform(s execution.Spec, p float64, seed uint64) Error {
	return func(task int) float64 { return 1 + p*(2*chance.Draw(seed, "uniform", s.Tasks[task].ID)-1) }
}

// Lognormal returns errors whose logarithm has the standard deviation sigma, and whose mean is 1: such errors are
// skewed, like measured runtimes. A sigma of 0.83 makes the standard deviation equal to the mean, as it was measured
// for LIGO's Inspiral.
func Lognormal(s execution.Spec, sigma float64, seed uint64) Error {
	return func(task int) float64 { return chance.Lognormal(sigma, seed, "lognormal", s.Tasks[task].ID) }
}

// ByKind returns errors with one lognormal factor for all tasks of a kind, i.e. with the same transformation: such
// errors do not cancel out.
func ByKind(kind func(task int) string, sigma float64, seed uint64) Error {
	return func(task int) float64 { return chance.Lognormal(sigma, seed, "kind", kind(task)) }
}

// ByHost returns a function for Scenario.Speed that returns a lognormal factor for each host: the errors of tasks on
// one host are correlated, because hosts differ.
func ByHost(sigma float64, seed uint64) func(Host) float64 {
	return func(h Host) float64 { return chance.Lognormal(sigma, seed, h.names("host")...) }
}

// Runtimes returns the runtimes that result from multiplying the tasks' estimates by the given factors.
func Runtimes(s execution.Spec, errors ...Error) Runtime {
	return func(task, _ int) time.Duration {
		took := s.Tasks[task].Estimate
		for _, by := range errors {
			took = scaled(took, by(task))
		}
		return took
	}
}

// FailingTasks returns a function for Failures.Task that makes each attempt fail with the given probability, at a
// uniformly random share of its runtime.
func FailingTasks(s execution.Spec, probability float64, seed uint64) func(task, attempt int) float64 {
	return func(task, attempt int) float64 {
		id, try := s.Tasks[task].ID, chance.Number(attempt)
		if chance.Draw(seed, "fails", id, try) >= probability {
			return 1
		}
		return chance.Draw(seed, "fails at", id, try)
	}
}

// FailingPilots returns a function for Failures.Pilot that ends pilots abruptly after exponentially distributed times
// with the given mean, as a site does that may reclaim its hosts at any time.
func FailingPilots(mean time.Duration, seed uint64) func(site string, pilot int) (time.Duration, bool) {
	return func(site string, pilot int) (time.Duration, bool) {
		return chance.Exponential(mean, Never, seed, "pilot fails", site, chance.Number(pilot)), true
	}
}

// FailingHosts returns a function for Failures.Host that makes single hosts fail after exponentially distributed times
// with the given mean.
func FailingHosts(mean time.Duration, seed uint64) func(Host) (time.Duration, bool) {
	return func(h Host) (time.Duration, bool) {
		return chance.Exponential(mean, Never, seed, h.names("host fails")...), true
	}
}

// SampledWaits returns a function for Site.Draw that draws each pilot's wait from the observed waits; if there are
// none, pilots do not wait. Waits are random and heavy-tailed, so a constant wait proves little.
func SampledWaits(site string, waits []time.Duration, seed uint64) func(plan.Shape, int) time.Duration {
	return func(_ plan.Shape, n int) time.Duration {
		if len(waits) == 0 {
			return 0
		}
		return waits[int(chance.Draw(seed, "wait", site, chance.Number(n))*float64(len(waits)))]
	}
}

// names returns the names from which a random value for a host is derived.
func (h Host) names(what string) []string {
	return []string{what, h.Site, chance.Number(h.Pilot), chance.Number(h.Number)}
}
