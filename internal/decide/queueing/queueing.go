// Package queueing estimates from past waits how long attempts will wait in a site's queue.
//
// A wait is known exactly if the attempt started. An attempt that was abandoned, or that still waits, would have waited
// longer: estimates count it as a longer wait, because omitting it would make a slow queue look fast. Quantile returns
// the estimate itself, and Bound a value that the true quantile rarely exceeds. In and Near select the waits on which
// an estimate is based.
//
// The package reads neither a clock nor a store: the caller passes the waits and the current time.
package queueing

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Stats returns statistics of waits by queue and shape, in the order of these. Waits of unknown length are omitted.
//
// Omitting attempts that did not start would make a slow queue look fast: a user who gives up after an hour never
// reports a wait of two hours. Quantiles are therefore computed by Kaplan and Meier's method, which counts a censored
// wait as longer than observed.
func Stats(waits []corral.Wait, now time.Time) []corral.WaitStats {
	groups := map[corral.WaitStats][]corral.Wait{} // :: shape → its waits
	for _, w := range waits {
		if w.Unseen() {
			continue
		}
		shape := corral.WaitStats{Queue: w.Queue, Hosts: w.Hosts, CPUs: w.CPUs, Walltime: w.Walltime}
		groups[shape] = append(groups[shape], w)
	}
	var all []corral.WaitStats
	for s, group := range groups {
		all = append(all, measure(s, group, now))
	}
	slices.SortFunc(all, func(a, b corral.WaitStats) int {
		return cmp.Or(
			cmp.Compare(a.Queue, b.Queue), a.Hosts-b.Hosts, a.CPUs-b.CPUs, cmp.Compare(a.Walltime, b.Walltime))
	})
	return all
}

// In returns the waits in a queue, and the waits whose queue is unknown. If queue is empty, the queue is unknown, and
// In returns all waits because any wait may have been in that queue.
func In(queue string, waits []corral.Wait) []corral.Wait {
	here := make([]corral.Wait, 0, len(waits))
	for _, w := range waits {
		if asked := cmp.Or(w.Queue, w.Default); asked == "" || queue == "" || asked == queue {
			here = append(here, w)
		}
	}
	return here
}

// Near returns the waits of pilots with at least half and at most twice as many cpus: wider pilots find room later.
func Near(cpus int, waits []corral.Wait) []corral.Wait {
	return slices.DeleteFunc(slices.Clone(waits), func(w corral.Wait) bool {
		return w.Hosts*w.CPUs > 2*cpus || 2*w.Hosts*w.CPUs < cpus
	})
}

// A span is one wait; spans that ended with a start are sorted before censored spans of the same length.
type span struct {
	d        time.Duration
	censored bool
}

// measure completes s, which contains only a shape, with the statistics of its waits.
func measure(s corral.WaitStats, waits []corral.Wait, now time.Time) corral.WaitStats {
	spans := sorted(waits, now)
	for _, w := range spans {
		if w.censored {
			s.Censored++
		} else {
			s.Max = max(s.Max, corral.Seconds(w.d))
		}
	}
	s.Count, s.Median, s.P90 = len(waits), quantile(spans, 0.5), quantile(spans, 0.9)
	return s
}

// Quantile returns the time within which a share of these attempts started, computed as in Stats.
func Quantile(waits []corral.Wait, share float64, now time.Time) corral.Quantile {
	return quantile(sorted(slices.DeleteFunc(slices.Clone(waits), corral.Wait.Unseen), now), share)
}

// The parameters of a bound: the share of cases in which the bound must be valid, the number of waits that together
// count as a single wait, and the multiple of the required number of waits on which the bound is based. Pilots that are
// submitted soon after each other encounter the same queue and wait for similar times, so that many of them provide no
// more information than a single pilot. The latter two parameters were chosen on the first half of a trace;
// bench/evidence checks them on the second half.
const (
	boundCertainty = 0.95
	boundAlike     = 20
	boundWindow    = 2
)

// Bound returns a time that a share of attempts does not exceed even if the observed attempts were lucky: the true
// quantile is below this time in 95 % of cases. waits are in the order of their submission; only the latest count.
//
// It uses the binomial method of Brevik, Nurmi and Wolski (Predicting bounds on queuing delay for batch-scheduled
// parallel machines, PPoPP 2006): of n waits the kth shortest is above the quantile if fewer than k of them are below
// it, with a probability given by the binomial distribution. If there are so few waits that not even the longest is
// certain enough, Bound returns the longest, marked with AtLeast.
func Bound(waits []corral.Wait, share float64, now time.Time) corral.Quantile {
	spans := sorted(boundBy(waits, share), now)
	n := BoundRests(waits, share) / boundAlike
	k, ok := boundRank(n, share)
	if !ok {
		longest := quantile(spans, 1)
		longest.AtLeast = true
		return longest
	}
	return quantile(spans, float64(k)/float64(n))
}

// boundBy returns the latest waits, on which a bound for a share is based.
func boundBy(waits []corral.Wait, share float64) []corral.Wait {
	waits = slices.DeleteFunc(slices.Clone(waits), corral.Wait.Unseen)
	return waits[max(0, len(waits)-boundWindow*BoundNeeds(share)):]
}

// BoundRests returns the number of waits on which Bound is based: the number of the latest waits that ended with a
// start.
func BoundRests(waits []corral.Wait, share float64) (started int) {
	for _, w := range boundBy(waits, share) {
		if !w.StartedAt.IsZero() {
			started++
		}
	}
	return started
}

// BoundNeeds returns the number of waits on which a bound for a share must be based to be certain; a share close to 1
// is treated as 0.999.
func BoundNeeds(share float64) int {
	share = min(max(share, 0.05), 0.999)
	return int(math.Ceil(math.Log(1-boundCertainty)/math.Log(share))) * boundAlike
}

// boundRank returns the smallest k for which the kth shortest of n independent waits is, with enough certainty, no
// shorter than the quantile of a share; ok is false if there is no such k.
func boundRank(n int, share float64) (k int, ok bool) {
	if share >= 1 {
		return 0, false
	}
	chance, below := math.Pow(1-share, float64(n)), 0.0 // probabilities: exactly, and at most, k waits below it
	for k = range n {
		if below += chance; below >= boundCertainty {
			return k + 1, true
		}
		chance *= float64(n-k) / float64(k+1) * share / (1 - share)
	}
	return 0, false
}

func sorted(waits []corral.Wait, now time.Time) []span {
	spans := make([]span, len(waits))
	for i, w := range waits {
		spans[i].d, spans[i].censored = w.Waited(now)
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.d == b.d && a.censored != b.censored {
			return map[bool]int{false: -1, true: 1}[a.censored]
		}
		return cmp.Compare(a.d, b.d)
	})
	return spans
}

// quantile returns the shortest wait within which a share of all attempts has started, according to the product-limit
// estimate; spans must be sorted.
func quantile(spans []span, share float64) corral.Quantile {
	const rounding = 1e-9
	waiting := 1.0 // the share of attempts that still wait
	for i, s := range spans {
		if s.censored {
			continue
		}
		left := float64(len(spans) - i)
		if waiting *= (left - 1) / left; waiting <= 1-share+rounding {
			return corral.Quantile{Wait: corral.Seconds(s.d)}
		}
	}
	if len(spans) == 0 {
		return corral.Quantile{AtLeast: true}
	}
	return corral.Quantile{Wait: corral.Seconds(spans[len(spans)-1].d), AtLeast: true}
}
