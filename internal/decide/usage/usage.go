// Package usage adds up the core-hours that pilots held, and how they were used, by user, site and workflow.
//
// The terms: allocated time is that of pilots, whether or not it was used: cores times the time from a pilot's start
// to its end. Used time is that of tasks whose work counts: the last attempt at each. Lost time is that of work that
// had to run again: attempts that were cut off by their pilot's end, that vanished with their worker, or that failed
// and were tried again. Idle time is the rest.
//
// Sites report how long tasks took. An attempt's used and lost time is therefore believed only up to the time that
// the attempt held according to its own times and shape, which come from the batch system and corrald; beyond that
// all of its work is reduced in proportion.
//
// The time of tasks belongs to the owner and the workflow of their run. Idle time belongs to the user who requested
// the pilot, and to the workflow of the plan for which it was requested, or to no workflow if there was no plan. So
// every core-hour is in exactly one row, whatever rows are grouped by, and in each row the allocated time is the sum
// of used, idle and lost.
//
// The package is pure: the store reads Attempts and Work, both of which follow from stored times (the attempts' own,
// and those in the journals of runs), and Sum adds them up. Nothing is counted at run time.
package usage

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// CoreTime is time of one core, in milliseconds: a time.Duration holds less than three centuries, which ten thousand
// cores use up in eleven days.
type CoreTime int64

// Hours returns core-hours.
func (c CoreTime) Hours() float64 { return float64(c) / float64(time.Hour/time.Millisecond) }

// An Attempt is the time that a pilot held: From its start To its end, or until now while it is live.
type Attempt struct {
	ID       corral.JobID
	User     string
	Site     string
	Workflow string // of the plan that requested it; empty: none
	Cores    int
	From, To time.Time
}

// held returns the part of it that lies in a window.
func (a Attempt) held(w Window) CoreTime {
	from, to := a.From, a.To
	if from.Before(w.Since) {
		from = w.Since
	}
	if to.After(w.Until) {
		to = w.Until
	}
	return CoreTime(a.Cores) * CoreTime(max(0, to.Sub(from)).Milliseconds())
}

// Work is the time of an attempt that tasks of a run used in a window.
type Work struct {
	Attempt    corral.JobID // 0: cores that were not provided by a Corral pilot, as in an attached pool
	User       string
	Site       string // of the attempt; empty if it is 0
	Workflow   string
	Used, Lost CoreTime
}

// A Window is the period under consideration.
type Window struct{ Since, Until time.Time }

// NewWindow returns the window of whole hours, UTC, that contains since and until, because work is recorded by hour.
// A zero until, or a future one, means now: then the current hour counts up to the present.
func NewWindow(since, until, now time.Time) Window {
	w := Window{Since: since.UTC().Truncate(time.Hour), Until: until.UTC()}
	if whole := w.Until.Truncate(time.Hour); whole.Before(w.Until) {
		w.Until = whole.Add(time.Hour)
	}
	if until.IsZero() || w.Until.After(now) {
		w.Until = now.UTC()
	}
	return w
}

// Hours returns the window in hours since 1970, excluding the second one.
func (w Window) Hours() (from, to int64) {
	const hour = int64(time.Hour / time.Millisecond)
	from, to = w.Since.UnixMilli()/hour, (w.Until.UnixMilli()+hour-1)/hour
	return max(0, from), max(0, to)
}

// A Key identifies the owner of a row. Fields by which rows are not grouped are empty.
type Key struct{ User, Site, Workflow string }

// A By is a field by which rows are grouped.
type By string

// The fields by which rows can be grouped.
const (
	ByUser     By = "user"
	BySite     By = "site"
	ByWorkflow By = "workflow"
)

// Bys lists all of them, in the order of columns.
var Bys = []By{ByUser, BySite, ByWorkflow}

// only returns the key with only the grouping fields.
func (k Key) only(by []By) Key {
	var o Key
	for _, b := range by {
		switch b {
		case ByUser:
			o.User = k.User
		case BySite:
			o.Site = k.Site
		case ByWorkflow:
			o.Workflow = k.Workflow
		}
	}
	return o
}

// A Row is the time of one key. Allocated returns the sum of its fields.
type Row struct {
	Key
	Used, Idle, Lost CoreTime
}

// Allocated returns the row's total time.
func (r Row) Allocated() CoreTime { return r.Used + r.Idle + r.Lost }

// Sum adds up attempts and work of a window into a row for each key, in the order of keys. Tasks that were timed by
// another clock may seem to have taken a little more of an attempt than it held, and falsified times much more: the
// work of each attempt is at most the time that the attempt held, and work of an attempt that held nothing does not
// count. Allocated time is therefore the sum of the time held by attempts and the time used on cores that no pilot
// provided.
func Sum(w Window, attempts []Attempt, work []Work, by ...By) []Row {
	rows := map[Key]*Row{}
	row := func(k Key) *Row {
		k = k.only(by)
		if rows[k] == nil {
			rows[k] = &Row{Key: k}
		}
		return rows[k]
	}
	held, took := map[corral.JobID]CoreTime{}, map[corral.JobID]CoreTime{}
	for _, a := range attempts {
		held[a.ID] = a.held(w)
	}
	for _, t := range work {
		took[t.Attempt] = took[t.Attempt].plus(t.Used).plus(t.Lost)
	}
	left := maps.Clone(held)
	for _, t := range work {
		if t.Attempt != 0 {
			t = t.within(held[t.Attempt], took[t.Attempt])
			t.Used = min(t.Used, left[t.Attempt]) // the sums are clipped, too
			t.Lost = min(t.Lost, left[t.Attempt]-t.Used)
			left[t.Attempt] -= t.Used + t.Lost
		}
		r := row(Key{t.User, t.Site, t.Workflow})
		r.Used = r.Used.plus(t.Used)
		r.Lost = r.Lost.plus(t.Lost)
	}
	for _, a := range attempts {
		if idle := left[a.ID]; idle > 0 {
			row(Key{a.User, a.Site, a.Workflow}).Idle += idle
		}
	}
	sorted := make([]Row, 0, len(rows))
	for _, k := range slices.SortedFunc(maps.Keys(rows), Key.compare) {
		sorted = append(sorted, *rows[k])
	}
	return sorted
}

// within returns the work reduced in proportion if all work of its attempt took more than the attempt held.
func (t Work) within(held, took CoreTime) Work {
	t.Used, t.Lost = max(0, t.Used), max(0, t.Lost)
	if took > held {
		t.Used, t.Lost = t.Used.share(held, took), t.Lost.share(held, took)
	}
	return t
}

// share returns c times part by whole, rounded down. The product may need more than 64 bits.
func (c CoreTime) share(part, whole CoreTime) CoreTime {
	high, low := bits.Mul64(uint64(c), uint64(part))
	share, _ := bits.Div64(high, low, uint64(whole)) // part < whole, so the result is less than c
	return CoreTime(share)
}

// plus returns the sum; negative values count as 0, and the result is limited to the largest value.
func (c CoreTime) plus(o CoreTime) CoreTime {
	if c, o = max(0, c), max(0, o); c > math.MaxInt64-o {
		return math.MaxInt64
	}
	return c + o
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.User, o.User), cmp.Compare(k.Site, o.Site), cmp.Compare(k.Workflow, o.Workflow))
}
