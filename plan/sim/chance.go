package sim

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/chance"
)

// An Error is by which factor the runtime of a task, by its index, differs from its estimate. Each task has one, which
// all its attempts share.
type Error func(task int) float64

// Uniform errs by up to the share p in either direction, evenly: actual = estimate × (1 + q), q from (−p, p), as in the
// original study of ensembles (corral-thesis, §1.6.11). Such errors cancel out over many tasks (T34).
func Uniform(s execution.Spec, p float64, seed uint64) Error {
	return func(task int) float64 { return 1 + p*(2*chance.Draw(seed, "uniform", s.Tasks[task].ID)-1) }
}

// Lognormal errs by a factor whose logarithm has the standard deviation sigma, and whose mean is 1: skewed, as measured
// runtimes are (T34: of LIGO's Inspiral the standard deviation equals the mean, which is sigma = 0.83).
func Lognormal(s execution.Spec, sigma float64, seed uint64) Error {
	return func(task int) float64 { return chance.Lognormal(sigma, seed, "lognormal", s.Tasks[task].ID) }
}

// ByKind errs by one lognormal factor for all tasks of a kind, its transformation: errors that do not cancel out (T34).
func ByKind(kind func(task int) string, sigma float64, seed uint64) Error {
	return func(task int) float64 { return chance.Lognormal(sigma, seed, "kind", kind(task)) }
}

// ByHost gives each host a lognormal factor for all that runs there, for Scenario.Speed: errors that are correlated
// because hosts differ (T34).
func ByHost(sigma float64, seed uint64) func(Host) float64 {
	return func(h Host) float64 { return chance.Lognormal(sigma, seed, h.names("host")...) }
}

// Runtimes returns what tasks take whose estimates err by the product of some factors.
func Runtimes(s execution.Spec, errors ...Error) Runtime {
	return func(task, _ int) time.Duration {
		took := s.Tasks[task].Estimate
		for _, by := range errors {
			took = scaled(took, by(task))
		}
		return took
	}
}

// FailingTasks has each attempt fail with some probability, at a share of its runtime that is drawn evenly
// (corral-thesis, §1.6.11).
func FailingTasks(s execution.Spec, probability float64, seed uint64) func(task, attempt int) float64 {
	return func(task, attempt int) float64 {
		id, try := s.Tasks[task].ID, chance.Number(attempt)
		if chance.Draw(seed, "fails", id, try) >= probability {
			return 1
		}
		return chance.Draw(seed, "fails at", id, try)
	}
}

// FailingPilots has pilots end without a word after times that are drawn from an exponential distribution of this mean:
// a site that takes its hosts back at any time alike.
func FailingPilots(mean time.Duration, seed uint64) func(site string, pilot int) (time.Duration, bool) {
	return func(site string, pilot int) (time.Duration, bool) {
		return chance.Exponential(mean, Never, seed, "pilot fails", site, chance.Number(pilot)), true
	}
}

// FailingHosts does the same to single hosts.
func FailingHosts(mean time.Duration, seed uint64) func(Host) (time.Duration, bool) {
	return func(h Host) (time.Duration, bool) {
		return chance.Exponential(mean, Never, seed, h.names("host fails")...), true
	}
}

// SampledWaits draws each pilot's wait from what others have waited; with none given there is no wait (T35: waits are
// random and heavy-tailed, and a constant in their place proves little).
func SampledWaits(site string, waits []time.Duration, seed uint64) func(plan.Shape, int) time.Duration {
	return func(_ plan.Shape, n int) time.Duration {
		if len(waits) == 0 {
			return 0
		}
		return waits[int(chance.Draw(seed, "wait", site, chance.Number(n))*float64(len(waits)))]
	}
}

// names are what something is drawn for that happens to a host.
func (h Host) names(what string) []string {
	return []string{what, h.Site, chance.Number(h.Pilot), chance.Number(h.Number)}
}
