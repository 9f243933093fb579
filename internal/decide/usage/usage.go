// Package usage adds up the core-hours that pilots held, by user, site and workflow, and determines how they were used.
//
// The terms are as follows. Allocated time is the core time of pilots, whether or not it was used: the number of cores
// times the time from a pilot's start to its end. Used time is the time of the attempts at tasks that count: the last
// attempt at each task. Lost time is the time of work that had to run again: attempts that were cut off by their
// pilot's end, that vanished with their worker, or that failed and were repeated. Idle time is the remainder.
//
// Sites report how long tasks took, and such reports may be false. An attempt's used and lost time is therefore limited
// to the time that the attempt held according to its own times and shape, which are determined by the batch system and
// corrald; if its work exceeds that time, all of its work is reduced in proportion.
//
// The time of tasks is attributed to the owner and the workflow of their run. Idle time is attributed to the user who
// requested the pilot, and to the workflow of the plan for which the pilot was requested, or to no workflow if there
// was no plan. So every core-hour is in exactly one row, however rows are grouped, and in each row the allocated time
// is the sum of used, idle and lost time.
//
// The package is pure: the store reads Attempts and Work, both of which follow from stored times (the times of the
// attempts, and the times in the journals of runs), and Sum adds them up. No time is counted at run time.
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

// CoreTime is an amount of core time in milliseconds. A time.Duration can represent less than three centuries, which
// ten thousand cores use up in eleven days.
type CoreTime int64

// Hours returns the time in core-hours.
func (c CoreTime) Hours() float64 { return float64(c) / float64(time.Hour/time.Millisecond) }

// An Attempt is the time that a pilot held: From its start To its end, or until now while it is live.
type Attempt struct {
	ID       corral.JobID
	User     string
	Site     string
	Workflow string // workflow of the plan that requested the pilot; empty: none
	Cores    int
	From, To time.Time
}

// held returns the part of the attempt's time that lies within a window.
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

// Work is the part of an attempt's time that tasks of a run used in a window.
type Work struct {
	Attempt    corral.JobID // 0 for cores that were not provided by a Corral pilot, as in an attached pool
	User       string
	Site       string // site of the attempt; empty if Attempt is 0
	Workflow   string
	Used, Lost CoreTime
}

// A Window is the period under consideration.
type Window struct{ Since, Until time.Time }

// NewWindow returns the window of whole hours, UTC, that contains since and until, because work is recorded by hour. If
// until is zero or in the future, it means now, and the current hour counts up to the present.
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

// Hours returns the window as a range of hours since 1970, which includes from but not to.
func (w Window) Hours() (from, to int64) {
	const hour = int64(time.Hour / time.Millisecond)
	from, to = w.Since.UnixMilli()/hour, (w.Until.UnixMilli()+hour-1)/hour
	return max(0, from), max(0, to)
}

// A Key identifies a row. Fields by which rows are not grouped are empty.
type Key struct{ User, Site, Workflow string }

// A By is a field by which rows are grouped.
type By string

// The fields by which rows can be grouped.
const (
	ByUser     By = "user"
	BySite     By = "site"
	ByWorkflow By = "workflow"
)

// Bys lists all of these fields, in the order of columns.
var Bys = []By{ByUser, BySite, ByWorkflow}

// only returns the key reduced to the grouping fields.
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

// A Row holds the time of one key. Allocated returns the sum of its time fields.
type Row struct {
	Key
	Used, Idle, Lost CoreTime
}

// Allocated returns the row's total time.
func (r Row) Allocated() CoreTime { return r.Used + r.Idle + r.Lost }

// Sum adds up attempts and work of a window into a row for each key, in the order of keys. Tasks that were timed by
// another clock may seem to have used a little more of an attempt than the attempt held, and falsified times may exceed
// it by far. The work of each attempt is therefore limited to the time that the attempt held, and work of an attempt
// that held no time does not count. Allocated time is therefore the sum of the time held by attempts and the time used
// on cores that no pilot provided.
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
			t.Used = min(t.Used, left[t.Attempt]) // the sums are also clipped
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

// within returns the work, scaled down proportionally if the total work of its attempt exceeds the time that the
// attempt held.
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
