package workload

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

// The model of Lublin and Feitelson (The workload on parallel supercomputers: modeling the characteristics of rigid
// jobs, Journal of Parallel and Distributed Computing 63(11), 2003), with the published constants for jobs that are not
// divided into interactive and batch jobs.
//
// The model defines a job's arrival, its number of processors and its runtime:
//
//	processors  serial with some probability; otherwise the logarithm to base 2 has a two-stage uniform distribution,
//	            and is rounded in most cases, so that most sizes are powers of two
//	runtime     its natural logarithm has a hyper-gamma distribution, a mixture of two gamma distributions; the more
//	            processors a job has, the more probable is the one with long runtimes
//	arrival     the natural logarithm of the time between two jobs has a gamma distribution; that time passes slower
//	            or faster depending on the half hour of the day, in proportion to the jobs that arrive in it, which
//	            follow another gamma distribution
//
// The model defines neither requested times nor users: jobs request their runtimes, and each job has a different user.
//
// The invariant: the same arguments yield the same jobs, and a different load yields the same jobs at different times.

// These are the constants for the whole sample: sizes, runtimes, times between arrivals, and the daily cycle.
const (
	serial, power = 0.244, 0.576 // shares of jobs with one processor, and of jobs with a size rounded to a power of 2
	uLow, uProb   = 0.8, 0.86    // two-stage uniform: its minimum, and the probability of the first stage
	uMed          = 2.5          // the second stage ends this far below the machine's size

	alpha1, beta1 = 4.2, 0.94
	alpha2, beta2 = 312, 0.03
	pa, pb        = -0.0054, 0.78 // the probability of the first gamma distribution is pa × processors + pb

	alphaArrival, betaArrival = 10.2303, 0.4871 // in the rush hours
	rushToAll                 = 1.0225          // factor of alpha for the whole day
	alphaCycle, betaCycle     = 8.1737, 3.9631

	longest = 12 // maximum logarithm of a runtime: 45 hours
	rarest  = 13 // maximum logarithm of a time between arrivals: 5 days
)

// The day has 48 half hours. The cycle's distribution begins with the 11th of them, because the fewest jobs arrive at 5
// o'clock.
const (
	halfHours = 48
	dawn      = 11
	halfHour  = 30 * time.Minute
)

// Draw generates jobs for a machine, sorted by submission, from midnight on. With a positive load the times between
// jobs are scaled by a common factor, before the daily cycle is applied, so that the jobs' processor time is about that
// share of the machine's time from the first to the last submission. With a load of 0 the times are those of the model.
func Draw(jobs, processors int, load float64, seed uint64) []queue.Job {
	d := drawing{rng: rand.New(rand.NewPCG(seed, uint64(processors))), size: math.Log2(float64(processors))}
	all, gaps := make([]queue.Job, jobs), make([]float64, jobs)
	for i := range all {
		n := d.processors()
		runtime := time.Duration(d.runtime(n)) * time.Second
		all[i] = queue.Job{User: i + 1, Processors: n, Runtime: runtime, Requested: max(time.Second, runtime)}
		gaps[i] = d.gap()
	}
	place(all, gaps, 1)
	factor := 1.0
	for range 20 { // because of the cycle, the load is not proportional to the factor
		got := queue.Load(all, processors)
		if load <= 0 || got == 0 || math.Abs(got/load-1) < 1e-3 {
			break
		}
		factor *= got / load
		place(all, gaps, factor)
	}
	return all
}

// A drawing draws the values of jobs from a stream of random numbers.
type drawing struct {
	rng  *rand.Rand
	size float64 // logarithm to base 2 of the machine's processors
}

// processors draws the size of a job.
func (d *drawing) processors() int {
	u := d.rng.Float64()
	if u <= serial {
		return 1
	}
	low, med := math.Min(uLow, d.size), math.Max(d.size-uMed, math.Min(uLow, d.size))
	x := low + (med-low)*d.rng.Float64()
	if d.rng.Float64() > uProb {
		x = med + (d.size-med)*d.rng.Float64()
	}
	if u <= serial+power {
		x = math.Floor(x + 0.5)
	}
	return int(math.Min(math.Exp2(x)+0.5, math.Exp2(d.size)+1e-9))
}

// runtime draws the runtime of a job of the given size, in seconds.
func (d *drawing) runtime(processors int) float64 {
	for {
		alpha, beta := float64(alpha1), beta1
		if p := pa*float64(processors) + pb; d.rng.Float64() > p {
			alpha, beta = alpha2, beta2
		}
		if x := d.gamma(alpha) * beta; x <= longest {
			return math.Floor(math.Exp(x))
		}
	}
}

// gap draws the time between two jobs, in seconds of an average half hour.
func (d *drawing) gap() float64 {
	for {
		if x := d.gamma(alphaArrival*rushToAll) * betaArrival; x <= rarest {
			return math.Exp(x)
		}
	}
}

// gamma draws from the gamma distribution with the given shape, which must be at least 1, and scale 1 (Marsaglia and
// Tsang: A simple method for generating gamma variables, ACM TOMS 26(3), 2000).
func (d *drawing) gamma(alpha float64) float64 {
	a := alpha - 1.0/3
	c := 1 / math.Sqrt(9*a)
	for {
		x := d.rng.NormFloat64()
		v := 1 + c*x
		v *= v * v
		if v > 0 && math.Log(1-d.rng.Float64()) < x*x/2+a-a*v+a*math.Log(v) {
			return a * v
		}
	}
}

// place sets the submission times of jobs: each job arrives when its gap, times a factor, has passed since the previous
// arrival. In a half hour of weight w time passes 1/w times as fast.
func place(jobs []queue.Job, gaps []float64, factor float64) {
	weights := cycle()
	slot, into := 0, 0.0 // the half hour, and the number of its seconds that have passed
	for i := range jobs {
		left := gaps[i] * factor
		for {
			weight := weights[slot%halfHours]
			rest := (halfHour.Seconds() - into) * weight
			if left < rest {
				into += left / weight
				break
			}
			left -= rest
			slot, into = slot+1, 0
		}
		at := time.Duration(slot)*halfHour + time.Duration(into*float64(time.Second))
		jobs[i].Submit = at.Truncate(time.Second)
	}
}

// cycle returns the weights of the half hours of a day from midnight on; their mean is 1.
func cycle() (weights [halfHours]float64) {
	var sum float64
	for i := dawn; i < dawn+halfHours; i++ {
		x := float64(i)
		w := below(alphaCycle, (x+0.5)/betaCycle) - below(alphaCycle, (x-0.5)/betaCycle)
		weights[(i-1)%halfHours] = w
		sum += w
	}
	for i := range weights {
		weights[i] *= halfHours / sum
	}
	return weights
}

// below returns the probability that a gamma variable with the given shape and scale 1 is below x, computed by the
// series of the incomplete gamma function (Abramowitz and Stegun, 6.5.29).
func below(alpha, x float64) float64 {
	term := 1 / alpha
	sum := term
	for k := 1.0; term > 1e-15*sum; k++ {
		term *= x / (alpha + k)
		sum += term
	}
	log, _ := math.Lgamma(alpha)
	return sum * math.Exp(alpha*math.Log(x)-x-log)
}
