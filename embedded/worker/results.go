package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// results are those that the dispatcher may not have recorded. The worker keeps each until it is acknowledged, and
// sends it again over a new connection, or if the acknowledgement takes too long. Their numbers tell them apart: the
// dispatcher acknowledges numbers, and a result may arrive twice.
type results struct {
	last    int64 // number given
	unacked map[int64]*unacked
	fresh   []wire.Report // those not sent yet, in order
	due     time.Time     // when a timer will send them; zero: none will
}

// unacked is a result that the dispatcher may not have recorded.
type unacked struct {
	wire.Report
	sentAt  time.Time // zero: not yet
	stopped bool      // its job was stopped before its last task
}

// add takes a result in, to be sent.
func (r *results) add(result execution.Result) {
	r.last++
	report := wire.Report{N: r.last, Result: result}
	r.unacked[r.last] = &unacked{Report: report}
	r.fresh = append(r.fresh, report)
}

// delay notes that the results are to be sent after a delay; it reports whether a timer must be set for that, since
// none will send them earlier.
func (r *results) delay(now time.Time, delay time.Duration) bool {
	due := now.Add(delay)
	if !r.due.IsZero() && !due.Before(r.due) {
		return false
	}
	r.due = due
	return true
}

// all returns everything that is not acknowledged, in order, to be sent at now.
func (r *results) all(now time.Time) []wire.Report {
	var all []wire.Report
	for _, u := range r.unacked {
		u.sentAt = now
		all = append(all, u.Report)
	}
	slices.SortFunc(all, func(a, b wire.Report) int { return cmp.Compare(a.N, b.N) })
	r.fresh = nil
	return all
}

// unsent returns what was not sent yet, to be sent at now. It is valid until the next add.
func (r *results) unsent(now time.Time) []wire.Report {
	for i := range r.fresh {
		if u := r.unacked[r.fresh[i].N]; u != nil {
			u.sentAt = now
		}
	}
	reports := r.fresh
	r.fresh = r.fresh[:0]
	return reports
}

// late reports whether a result should have been acknowledged by now, patience after it was sent.
func (r *results) late(now time.Time, patience time.Duration) bool {
	for _, u := range r.unacked {
		if !u.sentAt.IsZero() && now.Sub(u.sentAt) > patience {
			return true
		}
	}
	return false
}

// acknowledge forgets the results with these numbers.
func (r *results) acknowledge(numbers []int64) {
	for _, n := range numbers {
		delete(r.unacked, n)
	}
}

// stop notes that jobs were stopped half way. As long as the dispatcher may lack one of a job's results it must be
// told that again over a new connection: those results look as if the job went on.
func (r *results) stop(keys []execution.Key) {
	for _, u := range r.unacked {
		u.stopped = u.stopped || slices.Contains(keys, u.Key)
	}
}

// stopped returns the jobs that were stopped half way and have results here.
func (r *results) stopped() []execution.Key {
	var keys []execution.Key
	for _, u := range r.unacked {
		if u.stopped && !slices.Contains(keys, u.Key) {
			keys = append(keys, u.Key)
		}
	}
	return keys
}
