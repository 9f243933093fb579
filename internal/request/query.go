package request

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A Query reads the parameters of a request. It keeps the first thing that is wrong with them, so that a handler reads
// all it wants and then asks Err once. A parameter that is absent reads as its default.
type Query struct {
	values url.Values
	err    error
}

// repeatable are the parameters that may be given any number of times.
var repeatable = []string{"label", "state"}

// ReadQuery reads raw, which is what follows the question mark of a URL. Only the known parameters may be in it, each
// once unless it is repeatable. It parses raw itself because net/http silently drops what it cannot read.
func ReadQuery(raw string, known ...string) *Query {
	values, err := url.ParseQuery(raw)
	q := &Query{values: values}
	if err != nil {
		q.fail(unreadable(raw), "%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch times := len(values[name]); {
		case !slices.Contains(known, name):
			q.fail(brief(name), "there is no such parameter here")
		case times > 1 && !slices.Contains(repeatable, name):
			q.fail(name, "is given %d times; give it once", times)
		}
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

func (q *Query) fail(place, format string, args ...any) {
	if q.err == nil {
		q.err = corral.ErrorAt(corral.Invalid, place, format, args...)
	}
}

// Err returns the first thing that is wrong with what has been read so far.
func (q *Query) Err() error { return q.err }

// Has reports whether the parameter is there.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// Text reads a parameter as it is; absent is empty.
func (q *Query) Text(name string) string { return q.values.Get(name) }

// Flag reads true or false; absent is false.
func (q *Query) Flag(name string) bool {
	if !q.Has(name) {
		return false
	}
	set, err := strconv.ParseBool(q.Text(name))
	if err != nil {
		q.fail(name, "%q is neither true nor false", q.Text(name))
	}
	return set
}

// Number reads a whole number of at least 0; absent is 0.
func (q *Query) Number(name string) int64 {
	if !q.Has(name) {
		return 0
	}
	n, err := strconv.ParseInt(q.Text(name), 10, 64)
	if err != nil || n < 0 {
		q.fail(name, "%q is not a whole number of at least 0", q.Text(name))
	}
	return n
}

// OneOf reads one of the legal values; absent is the first of them.
func (q *Query) OneOf(name string, legal ...string) string {
	if !q.Has(name) {
		return legal[0]
	}
	v := q.Text(name)
	if !slices.Contains(legal, v) {
		q.fail(name, "%q is none of %s", v, strings.Join(legal, ", "))
	}
	return v
}

// Labels reads label=KEY=VALUE, any number of times: an object must have all of the labels. So a key with two values
// could match nothing, and is a mistake.
func (q *Query) Labels() map[string]string {
	labels := map[string]string{}
	for _, pair := range q.values["label"] {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			q.fail("label", "%q is not KEY=VALUE", pair)
		}
		if _, twice := labels[k]; twice {
			q.fail("label", "%.80q is given more than once; give it once", k)
		}
		labels[k] = v
	}
	return labels
}

// States reads state=STATE, any number of times: an object must be in one of the states.
func States[S ~string](q *Query, known []S) []S {
	var in []S
	for _, v := range q.values["state"] {
		if !slices.Contains(known, S(v)) {
			q.fail("state", "%q is not a state; the states are %v", v, known)
		}
		in = append(in, S(v))
	}
	return in
}

// Page reads after and limit, which is most if absent.
func (q *Query) Page(most int) (after int64, limit int) {
	after, limit = q.Number("after"), int(q.Number("limit"))
	if limit > most {
		q.fail("limit", "%d is more than %d", limit, most)
	}
	if limit == 0 {
		limit = most
	}
	return after, limit
}

// Timeout reads timeout_s: how long a wait may take; absent or longer than api.MaxWait is that.
func (q *Query) Timeout() time.Duration {
	if !q.Has("timeout_s") {
		return api.MaxWait
	}
	s, err := strconv.ParseFloat(q.Text("timeout_s"), 64)
	if err != nil || !(s >= 0) { // not s < 0: NaN
		q.fail("timeout_s", "%q is not a number of seconds of at least 0", q.Text("timeout_s"))
		return 0
	}
	return time.Duration(min(s, api.MaxWait.Seconds()) * float64(time.Second))
}
