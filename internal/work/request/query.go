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

// A Query reads the parameters of a request. It keeps the first error, so that a handler can read all parameters and
// then call Err once. An absent parameter has its default value.
type Query struct {
	values  url.Values
	checker checker
}

// repeatable lists the parameters that may be repeated.
var repeatable = []string{"label", "state"}

// ReadQuery parses raw, the part of a URL after the question mark. It may contain only the known parameters, each once
// unless it is repeatable. ReadQuery does not rely on net/http, which silently drops parameters that it cannot parse.
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

// unreadable returns the name of the first parameter that cannot be parsed, which url.ParseQuery does not report.
func unreadable(raw string) string {
	for pair := range strings.SplitSeq(raw, "&") {
		if _, err := url.ParseQuery(pair); err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return brief(name)
		}
	}
	return "query" // each can be parsed alone: there are too many
}

// Err returns the first error in the parameters read so far.
func (q *Query) Err() error { return q.checker.err }

// Has reports whether the query contains the parameter.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// Text returns a parameter unchanged; absent is empty.
func (q *Query) Text(name string) string { return q.values.Get(name) }

// Word returns a text for a batch system; absent is empty.
func (q *Query) Word(name string) string {
	s := q.Text(name)
	q.checker.text(name, s)
	return s
}

// Flag returns a boolean parameter; absent is false.
func (q *Query) Flag(name string) bool {
	if !q.Has(name) {
		return false
	}
	set, err := strconv.ParseBool(q.Text(name))
	q.checker.invalid(err != nil, name, "%q is neither true nor false", q.Text(name))
	return set
}

// Number returns a whole number of at least 0; absent is 0.
func (q *Query) Number(name string) int64 {
	if !q.Has(name) {
		return 0
	}
	n, err := strconv.ParseInt(q.Text(name), 10, 64)
	q.checker.invalid(err != nil || n < 0, name, "%q is not a whole number of at least 0", q.Text(name))
	return n
}

// Instant returns a time in the format of RFC 3339; absent is the zero time.
func (q *Query) Instant(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, q.Text(name))
	q.checker.invalid(err != nil, name, "%.40q is not a time as in 2006-01-02T15:04:05Z", q.Text(name))
	return at
}

// OneOf returns one of the legal values; absent is the first of them.
func (q *Query) OneOf(name string, legal ...string) string {
	if !q.Has(name) {
		return legal[0]
	}
	v := q.Text(name)
	q.checker.invalid(!slices.Contains(legal, v), name, "%q is none of %s", v, strings.Join(legal, ", "))
	return v
}

// Some returns a list of legal values, separated by commas, each at most once; absent is all of them.
func (q *Query) Some(name string, legal ...string) []string {
	if !q.Has(name) {
		return legal
	}
	some := strings.Split(q.Text(name), ",")
	for i, v := range some {
		q.checker.invalid(!slices.Contains(legal, v), name, "%.80q is none of %s", v, strings.Join(legal, ", "))
		q.checker.invalid(slices.Contains(some[:i], v), name, "%.80q is given twice", v)
	}
	return some
}

// Time returns a time in the format of RFC 3339, between the years 1970 and 9999; absent is the zero time.
func (q *Query) Time(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, q.Text(name))
	q.checker.invalid(err != nil || at.Year() < 1970 || at.Year() > 9999, name,
		"%.80q is not a time such as 2026-11-30T08:00:00Z", q.Text(name))
	return at
}

// Labels returns all label=KEY=VALUE parameters. An object must have all of the labels, so a key with two values would
// never match and is an error.
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

// States returns all state=STATE parameters. An object must be in one of the states.
func States[S ~string](q *Query, known []S) []S {
	var in []S
	for _, v := range q.values["state"] {
		q.checker.invalid(!slices.Contains(known, S(v)), "state",
			"%q is not a state; the states are %s", v, words(known))
		in = append(in, S(v))
	}
	return in
}

// Page returns after and limit, which is most if absent.
func (q *Query) Page(most int) (after int64, limit int) {
	after, limit = q.Number("after"), int(q.Number("limit"))
	q.checker.invalid(limit > most, "limit", "%d is more than %d", limit, most)
	return after, cmp.Or(limit, most)
}

// Timeout returns timeout_s, the maximum duration of a wait: api.MaxWait if it is absent or larger.
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
