package queueing

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// An Expected is the mean wait that is expected for a pilot, and the waits on which it is based.
type Expected struct {
	Wait   corral.Seconds `json:"wait_s"`
	Spread corral.Seconds `json:"spread_s"` // standard deviation
	Waits  int            `json:"waits"`    // number of waits; 0: none is known, and the wait is a guess
	Source string         `json:"source"`   // which pilots these waits belong to
}

// A Shape holds the properties of a pilot that determine its wait.
type Shape struct {
	Queue    string // empty: any queue
	CPUs     int    // total of all hosts
	Walltime time.Duration
}

// expectedWindow is the age up to which waits count (Ha et al., Towards general distributed resource selection,
// section IV).
const expectedWindow = 7 * 24 * time.Hour

// The sources of an expectation, the most specific first.
const (
	SourceLike  = "like pilots in the queue"
	SourceQueue = "all in the queue"
	SourceSite  = "all at the site"
	SourceGuess = "none: a guess"
)

// Expect returns the mean wait, over the last seven days, of like pilots in a queue (as defined by Predictor). If none
// of them started, it returns the mean wait of all pilots in the queue; failing that, of all pilots at the site; and
// failing that the guess, so that an unknown site does not appear to be free of waits. A pilot that has not started
// counts if it has waited for longer than the mean of the pilots that started, because a pilot that was abandoned at
// once provides no information.
func Expect(waits []corral.Wait, pilot Shape, now time.Time, guess time.Duration) Expected {
	recent := slices.DeleteFunc(slices.Clone(waits), func(w corral.Wait) bool {
		return w.Unseen() || now.Sub(w.SubmittedAt) > expectedWindow
	})
	here := In(pilot.Queue, recent)
	a, b := class(pilot.CPUs, pilot.Walltime)
	like := slices.DeleteFunc(slices.Clone(here), func(w corral.Wait) bool {
		c, d := class(w.Hosts*w.CPUs, time.Duration(w.Walltime))
		return a != c || b != d
	})
	for _, of := range []struct {
		source string
		waits  []corral.Wait
	}{{SourceLike, like}, {SourceQueue, here}, {SourceSite, recent}} {
		if spans := telling(sorted(of.waits, now), guess); len(spans) > 0 {
			return mean(spans, of.source)
		}
	}
	return Expected{Wait: corral.Seconds(guess), Source: SourceGuess}
}

// telling returns the waits that ended with a start, together with any other waits that are longer than the mean of the
// former, or longer than the guess if no pilot started.
func telling(spans []span, guess time.Duration) []span {
	started := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.censored })
	least := guess
	if len(started) > 0 {
		least = time.Duration(mean(started, "").Wait)
	}
	return slices.DeleteFunc(spans, func(s span) bool { return s.censored && s.d <= least })
}

func mean(spans []span, source string) Expected {
	var sum, squares float64
	for _, s := range spans {
		sum += s.d.Seconds()
	}
	n := float64(len(spans))
	for _, s := range spans {
		from := s.d.Seconds() - sum/n
		squares += from * from
	}
	seconds := func(s float64) corral.Seconds {
		return corral.Seconds(time.Duration(s * float64(time.Second)).Round(time.Millisecond))
	}
	return Expected{seconds(sum / n), seconds(math.Sqrt(squares / max(1, n-1))), len(spans), source}
}
