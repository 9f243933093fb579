package corral

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Wait is how long an attempt waited in a site's queue, with its shape. It outlives the attempt's glidein and site.
type Wait struct {
	Site        string    `json:"site"`                    // its name at that time; another site may have it now
	Queue       string    `json:"queue,omitempty"`         // that was asked for; empty: the default one
	Default     string    `json:"default_queue,omitempty"` // the site's, as it is known now
	Account     string    `json:"account,omitempty"`       // of the glidein, else of the site now; so are the next two
	QOS         string    `json:"qos,omitempty"`
	Constraint  string    `json:"constraint,omitempty"`
	Hosts       int       `json:"hosts"`
	CPUs        int       `json:"cpus"`                 // of each host
	MemoryMiB   int       `json:"memory_mib,omitempty"` // of each host; 0: as the site gives it
	GPUs        int       `json:"gpus,omitempty"`       // of each host
	Walltime    Seconds   `json:"walltime_s"`
	SubmittedAt time.Time `json:"submitted_at"`
	StartedAt   time.Time `json:"started_at,omitzero"` // zero: it never has, or not yet
	WorkersAt   time.Time `json:"workers_at,omitzero"` // its first worker was in the cluster; zero: never, or not yet
	EndedAt     time.Time `json:"ended_at,omitzero"`   // zero: it has not
	Outcome     Outcome   `json:"outcome,omitempty"`
}

// Waited returns how long the attempt waited until it started. One that did not start is censored: had it been left
// there, it would have waited longer than until its end, or than until now.
func (w Wait) Waited(now time.Time) (d time.Duration, censored bool) {
	switch {
	case !w.StartedAt.IsZero():
		return max(0, w.StartedAt.Sub(w.SubmittedAt)), false
	case !w.EndedAt.IsZero():
		return max(0, w.EndedAt.Sub(w.SubmittedAt)), true
	}
	return max(0, now.Sub(w.SubmittedAt)), true
}

// unseen reports whether it is unknown how long the attempt waited: it began between two looks at the queue, or was
// lost.
func (w Wait) unseen() bool {
	return w.StartedAt.IsZero() && !slices.Contains([]Outcome{"", OutcomeRemoved, OutcomeFailed}, w.Outcome)
}

// A Quantile is the time within which a share of attempts started. AtLeast says that too few have: it is more than
// Wait.
type Quantile struct {
	Wait    Seconds `json:"wait_s"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// WaitStats say how long attempts of one shape waited in one queue.
type WaitStats struct {
	Queue    string   `json:"queue,omitempty"`
	Hosts    int      `json:"hosts"`
	CPUs     int      `json:"cpus"` // of each host
	Walltime Seconds  `json:"walltime_s"`
	Count    int      `json:"count"`    // attempts that the site accepted, of known wait
	Censored int      `json:"censored"` // of these, those that did not start: they would have waited for longer
	Median   Quantile `json:"median"`
	P90      Quantile `json:"p90"`
	Max      Seconds  `json:"max_s"` // of those that started
}

// WaitQuantiles returns statistics of waits by queue and shape, in their order. Those of which it is unknown how long
// they were are left out.
//
// To leave out what did not start would make a slow queue look fast: a user who gives up after an hour never reports a
// wait of two. Quantiles are therefore Kaplan and Meier's estimate, which counts a censored wait as one that is longer.
func WaitQuantiles(waits []Wait, now time.Time) []WaitStats {
	groups := map[WaitStats][]Wait{} // :: shape → its waits
	for _, w := range waits {
		if w.unseen() {
			continue
		}
		shape := WaitStats{Queue: w.Queue, Hosts: w.Hosts, CPUs: w.CPUs, Walltime: w.Walltime}
		groups[shape] = append(groups[shape], w)
	}
	var all []WaitStats
	for s, group := range groups {
		all = append(all, s.measure(group, now))
	}
	slices.SortFunc(all, func(a, b WaitStats) int {
		return cmp.Or(
			cmp.Compare(a.Queue, b.Queue), a.Hosts-b.Hosts, a.CPUs-b.CPUs, cmp.Compare(a.Walltime, b.Walltime))
	})
	return all
}

// A span is one wait; those that ended with a start come before censored ones of the same length.
type span struct {
	d        time.Duration
	censored bool
}

// measure completes s, which is a shape so far, by the waits of that shape.
func (s WaitStats) measure(waits []Wait, now time.Time) WaitStats {
	spans := sorted(waits, now)
	for _, w := range spans {
		if w.censored {
			s.Censored++
		} else {
			s.Max = max(s.Max, Seconds(w.d))
		}
	}
	s.Count, s.Median, s.P90 = len(waits), quantile(spans, 0.5), quantile(spans, 0.9)
	return s
}

// WaitQuantile returns the time within which a share of these attempts started, as WaitQuantiles computes it.
func WaitQuantile(waits []Wait, share float64, now time.Time) Quantile {
	return quantile(sorted(slices.DeleteFunc(slices.Clone(waits), Wait.unseen), now), share)
}

// Of a bound: the share of cases in which it must hold, how many of the latest waits count as one, and on how many
// times as many waits as it needs it rests. Pilots that are submitted soon after each other meet the same queue and
// wait alike, so that many of them tell no more than one does. The latter two were chosen on the first half of a trace;
// bench/evidence checks them on its second half.
const (
	boundCertainty = 0.95
	boundAlike     = 20
	boundWindow    = 2
)

// WaitBound returns a time that a share of attempts does not exceed even if those seen so far were lucky: the true
// quantile lies below it in 95 % of cases. waits are in the order of their submission; the latest of them count.
//
// It is the binomial method of Brevik, Nurmi and Wolski (Predicting bounds on queuing delay for batch-scheduled
// parallel machines, PPoPP 2006): of n waits the kth shortest is above the quantile if fewer than k of them are below
// it, of which the binomial distribution gives the probability. Where so few waits were seen that not even the longest
// is certain enough, that one is returned, with AtLeast.
func WaitBound(waits []Wait, share float64, now time.Time) Quantile {
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

// boundBy returns the latest waits, which a bound of a share is made of.
func boundBy(waits []Wait, share float64) []Wait {
	waits = slices.DeleteFunc(slices.Clone(waits), Wait.unseen)
	return waits[max(0, len(waits)-boundWindow*BoundNeeds(share)):]
}

// BoundRests returns on how many waits WaitBound rests: of the latest, those that ended with a start.
func BoundRests(waits []Wait, share float64) (started int) {
	for _, w := range boundBy(waits, share) {
		if !w.StartedAt.IsZero() {
			started++
		}
	}
	return started
}

// BoundNeeds returns on how many waits a bound of a share must rest to be certain; a share near 1 is counted as 0.999.
func BoundNeeds(share float64) int {
	share = min(max(share, 0.05), 0.999)
	return int(math.Ceil(math.Log(1-boundCertainty)/math.Log(share))) * boundAlike
}

// boundRank returns the least k for which the kth shortest of n independent waits is no shorter than the quantile of a
// share, certainly enough; ok is false if that is none of them.
func boundRank(n int, share float64) (k int, ok bool) {
	if share >= 1 {
		return 0, false
	}
	chance, below := math.Pow(1-share, float64(n)), 0.0 // that exactly, and at most, so many are below the quantile
	for k = range n {
		if below += chance; below >= boundCertainty {
			return k + 1, true
		}
		chance *= float64(n-k) / float64(k+1) * share / (1 - share)
	}
	return 0, false
}

func sorted(waits []Wait, now time.Time) []span {
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

// quantile returns the shortest wait by which a share of all has started, by the product-limit estimate; spans are
// sorted.
func quantile(spans []span, share float64) Quantile {
	const rounding = 1e-9
	waiting := 1.0 // the share that still waits
	for i, s := range spans {
		if s.censored {
			continue
		}
		left := float64(len(spans) - i)
		if waiting *= (left - 1) / left; waiting <= 1-share+rounding {
			return Quantile{Wait: Seconds(s.d)}
		}
	}
	if len(spans) == 0 {
		return Quantile{AtLeast: true}
	}
	return Quantile{Wait: Seconds(spans[len(spans)-1].d), AtLeast: true}
}
