package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// results contains the results that the dispatcher may not have recorded. The worker keeps each one until it is
// acknowledged, and sends it again over a new connection, or if the acknowledgement takes too long. The dispatcher
// acknowledges them by number, because a result may arrive twice.
type results struct {
	last    int64 // last number assigned
	unacked map[int64]*unacked
	fresh   []wire.Report // results not sent yet, in order
	due     time.Time     // when a timer will send them; zero: no timer is set
}

// unacked is a result that the dispatcher may not have recorded.
type unacked struct {
	wire.Report
	sentAt  time.Time // zero: not sent yet
	stopped bool      // its job was stopped before its last task
}

// add adds a result to be sent.
func (r *results) add(result execution.Result) {
	r.last++
	report := wire.Report{N: r.last, Result: result}
	r.unacked[r.last] = &unacked{Report: report}
	r.fresh = append(r.fresh, report)
}

// delay schedules the results to be sent after a delay; it reports whether the caller must set a timer, because no
// existing timer fires earlier.
func (r *results) delay(now time.Time, delay time.Duration) bool {
	due := now.Add(delay)
	if !r.due.IsZero() && !due.Before(r.due) {
		return false
	}
	r.due = due
	return true
}

// all returns all unacknowledged results, in order, to be sent at now.
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

// unsent returns the results that have not been sent, to be sent at now. The slice is valid until the next add.
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

// stop records that jobs were stopped before their last task. While the dispatcher may lack one of a job's results,
// this must be reported again over a new connection, because the results alone suggest that the job continues.
func (r *results) stop(keys []execution.Key) {
	for _, u := range r.unacked {
		u.stopped = u.stopped || slices.Contains(keys, u.Key)
	}
}

// stopped returns the jobs that were stopped before their last task and have unacknowledged results.
func (r *results) stopped() []execution.Key {
	var keys []execution.Key
	for _, u := range r.unacked {
		if u.stopped && !slices.Contains(keys, u.Key) {
			keys = append(keys, u.Key)
		}
	}
	return keys
}
