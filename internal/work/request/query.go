package request

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/api"
)

// A Query reads the parameters of a request. It keeps the first thing that is wrong with them, so that a handler reads
// all it wants and then asks Err once. A parameter that is absent reads as its default.
type Query struct {
	values  url.Values
	checker checker
}

// repeatable are the parameters that may be given any number of times.
var repeatable = []string{"label", "state"}

// ReadQuery reads raw, which is what follows the question mark of a URL. Only the known parameters may be in it, each
// once unless it is repeatable. It parses raw itself because net/http silently drops what it cannot read.
func ReadQuery(raw string, known ...string) *Query {
	values, err := url.ParseQuery(raw)
	q := &Query{values: values}
	if err != nil {
		q.checker.invalid(true, unreadable(raw), "%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		times := len(values[name])
		q.checker.invalid(!slices.Contains(known, name), brief(name), "there is no such parameter here")
		q.checker.invalid(times > 1 && !slices.Contains(repeatable, name), name,
			"is given %d times; give it once", times)
	}
	return q
}

// unreadable returns the name of the first parameter that cannot be read, which url.ParseQuery does not tell.
func unreadable(raw string) string {
	for pair := range strings.SplitSeq(raw, "&") {
		if _, err := url.ParseQuery(pair); err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return brief(name)
		}
	}
	return "query" // each can be read by itself: there are too many
}

// Err returns the first thing that is wrong with what has been read so far.
func (q *Query) Err() error { return q.checker.err }

// Has reports whether the parameter is there.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// Text reads a parameter as it is; absent is empty.
func (q *Query) Text(name string) string { return q.values.Get(name) }

// Word reads a text that is handed to a batch system; absent is empty.
func (q *Query) Word(name string) string {
	s := q.Text(name)
	q.checker.text(name, s)
	return s
}

// Flag reads true or false; absent is false.
func (q *Query) Flag(name string) bool {
	if !q.Has(name) {
		return false
	}
	set, err := strconv.ParseBool(q.Text(name))
	q.checker.invalid(err != nil, name, "%q is neither true nor false", q.Text(name))
	return set
}

// Number reads a whole number of at least 0; absent is 0.
func (q *Query) Number(name string) int64 {
	if !q.Has(name) {
		return 0
	}
	n, err := strconv.ParseInt(q.Text(name), 10, 64)
	q.checker.invalid(err != nil || n < 0, name, "%q is not a whole number of at least 0", q.Text(name))
	return n
}

// Instant reads a time, as in RFC 3339; absent is the zero time.
func (q *Query) Instant(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, q.Text(name))
	q.checker.invalid(err != nil, name, "%.40q is not a time as in 2006-01-02T15:04:05Z", q.Text(name))
	return at
}

// OneOf reads one of the legal values; absent is the first of them.
func (q *Query) OneOf(name string, legal ...string) string {
	if !q.Has(name) {
		return legal[0]
	}
	v := q.Text(name)
	q.checker.invalid(!slices.Contains(legal, v), name, "%q is none of %s", v, strings.Join(legal, ", "))
	return v
}

// Some reads a list of legal values, separated by commas, each of which may be there once; absent is all of them.
func (q *Query) Some(name string, legal ...string) []string {
	if !q.Has(name) {
		return legal
	}
	some := strings.Split(q.Text(name), ",")
	for i, v := range some {
		q.checker.invalid(!slices.Contains(legal, v), name, "%.80q is none of %s", v, strings.Join(legal, ", "))
		q.checker.invalid(slices.Contains(some[:i], v), name, "%.80q is there twice", v)
	}
	return some
}

// Time reads a time as RFC 3339 has it; absent is the zero time.
func (q *Query) Time(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, q.Text(name))
	q.checker.invalid(err != nil || at.Year() < 1970 || at.Year() > 9999, name,
		"%.80q is not a time such as 2026-11-30T08:00:00Z", q.Text(name))
	return at
}

// Labels reads label=KEY=VALUE, any number of times: an object must have all of the labels. So a key with two values
// could match nothing, and is a mistake.
func (q *Query) Labels() map[string]string {
	labels := map[string]string{}
	for _, pair := range q.values["label"] {
		k, v, ok := strings.Cut(pair, "=")
		_, twice := labels[k]
		q.checker.invalid(!ok || k == "", "label", "%q is not KEY=VALUE", pair)
		q.checker.invalid(twice, "label", "%.80q is given more than once; give it once", k)
		labels[k] = v
	}
	return labels
}

// States reads state=STATE, any number of times: an object must be in one of the states.
func States[S ~string](q *Query, known []S) []S {
	var in []S
	for _, v := range q.values["state"] {
		q.checker.invalid(!slices.Contains(known, S(v)), "state",
			"%q is not a state; the states are %s", v, words(known))
		in = append(in, S(v))
	}
	return in
}

// Page reads after and limit, which is most if absent.
func (q *Query) Page(most int) (after int64, limit int) {
	after, limit = q.Number("after"), int(q.Number("limit"))
	q.checker.invalid(limit > most, "limit", "%d is more than %d", limit, most)
	return after, cmp.Or(limit, most)
}

// Timeout reads timeout_s: how long a wait may take; absent or longer than api.MaxWait is that.
func (q *Query) Timeout() time.Duration {
	if !q.Has("timeout_s") {
		return api.MaxWait
	}
	s, err := strconv.ParseFloat(q.Text("timeout_s"), 64)
	if err != nil || !(s >= 0) { // not s < 0: NaN
		q.checker.invalid(true, "timeout_s", "%q is not a number of seconds of at least 0", q.Text("timeout_s"))
		return 0
	}
	return time.Duration(min(s, api.MaxWait.Seconds()) * float64(time.Second))
}
