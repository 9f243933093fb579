package sim

import (
	"math"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/plan"
)

// Chance is drawn by name, not from a stream: what is drawn for a task depends on the seed and on the task's ID alone,
// whatever was drawn before. So two policies meet the same runtimes, waits and failures (corral-thesis, T39: the
// original simulator shared one stream among its machines, and its algorithms did not).

// draw returns a number from [0, 1) for a seed and some names. The names are hashed by FNV-1a (Fowler, Noll, Vo), and
// the hash is mixed as in SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func draw(seed uint64, names ...string) float64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := mix(seed + offset)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0xff) * prime // ends the name
	}
	return float64(mix(h)>>11) / (1 << 53)
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// normal returns a number from the standard normal distribution (Box and Muller, 1958).
func normal(seed uint64, names ...string) float64 {
	u, v := draw(seed, names...), draw(mix(seed), names...)
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}

// lognormal returns a factor of mean 1 whose logarithm has this standard deviation.
func lognormal(sigma float64, seed uint64, names ...string) float64 {
	return math.Exp(sigma*normal(seed, names...) - sigma*sigma/2)
}

// An Error is by which factor the runtime of a task, by its index, differs from its estimate. Each task has one, which
// all its attempts share.
type Error func(task int) float64

// Uniform errs by up to the share p in either direction, evenly: actual = estimate × (1 + q), q from (−p, p), as in the
// original study of ensembles (corral-thesis, §1.6.11). Such errors cancel out over many tasks (T34).
func Uniform(s execution.Spec, p float64, seed uint64) Error {
	return func(task int) float64 { return 1 + p*(2*draw(seed, "uniform", s.Tasks[task].ID)-1) }
}

// Lognormal errs by a factor whose logarithm has the standard deviation sigma, and whose mean is 1: skewed, as measured
// runtimes are (T34: of LIGO's Inspiral the standard deviation equals the mean, which is sigma = 0.83).
func Lognormal(s execution.Spec, sigma float64, seed uint64) Error {
	return func(task int) float64 { return lognormal(sigma, seed, "lognormal", s.Tasks[task].ID) }
}

// ByKind errs by one lognormal factor for all tasks of a kind, its transformation: errors that do not cancel out (T34).
func ByKind(kind func(task int) string, sigma float64, seed uint64) Error {
	return func(task int) float64 { return lognormal(sigma, seed, "kind", kind(task)) }
}

// ByHost gives each host a lognormal factor for all that runs there, for Scenario.Speed: errors that are correlated
// because hosts differ (T34).
func ByHost(sigma float64, seed uint64) func(Host) float64 {
	return func(h Host) float64 { return lognormal(sigma, seed, "host", h.Site, number(h.Pilot), number(h.Number)) }
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
		id, try := s.Tasks[task].ID, number(attempt)
		if draw(seed, "fails", id, try) >= probability {
			return 1
		}
		return draw(seed, "fails at", id, try)
	}
}

// FailingPilots has pilots end without a word after times that are drawn from an exponential distribution of this mean:
// a site that takes its hosts back at any time alike.
func FailingPilots(mean time.Duration, seed uint64) func(site string, pilot int) (time.Duration, bool) {
	return func(site string, pilot int) (time.Duration, bool) {
		return exponential(mean, seed, "pilot fails", site, number(pilot)), true
	}
}

// FailingHosts does the same to single hosts.
func FailingHosts(mean time.Duration, seed uint64) func(Host) (time.Duration, bool) {
	return func(h Host) (time.Duration, bool) {
		return exponential(mean, seed, "host fails", h.Site, number(h.Pilot), number(h.Number)), true
	}
}

func exponential(mean time.Duration, seed uint64, names ...string) time.Duration {
	return min(Never, scaled(mean, -math.Log(1-draw(seed, names...))))
}

// SampledWaits draws each pilot's wait from what others have waited; with none given there is no wait (T35: waits are
// random and heavy-tailed, and a constant in their place proves little).
func SampledWaits(site string, waits []time.Duration, seed uint64) func(plan.Shape, int) time.Duration {
	return func(_ plan.Shape, n int) time.Duration {
		if len(waits) == 0 {
			return 0
		}
		return waits[int(draw(seed, "wait", site, number(n))*float64(len(waits)))]
	}
}

// number is a number as a name.
func number(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
