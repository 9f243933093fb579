package server

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// A query reads the parameters of a request. The first thing that is wrong with them stays in err, so
// that a handler asks for all it wants and looks once.
type query struct {
	values url.Values
	err    error
}

// repeatable are the parameters that may be given any number of times.
var repeatable = []string{"label", "state"}

// queryOf returns the request's parameters, of which only the known ones may be there, each once. It reads them itself:
// what net/url and echo cannot read they leave out without a word.
func queryOf(c echo.Context, known ...string) *query {
	raw := c.Request().URL.RawQuery
	values, err := url.ParseQuery(raw)
	q := &query{values: values}
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

// unreadable returns the name of the first parameter that cannot be read.
func unreadable(raw string) string {
	for pair := range strings.SplitSeq(raw, "&") {
		if _, err := url.ParseQuery(pair); err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return brief(name)
		}
	}
	return "query" // all of them can: they are too many
}

// brief is the name of a field or parameter that is none of ours, as it is told.
func brief(name string) string { return fmt.Sprintf("%.80s", name) }

func (q *query) fail(place, format string, args ...any) {
	if q.err == nil {
		q.err = corral.ErrorAt(corral.Invalid, place, format, args...)
	}
}

// flag reads true or false; absent is false.
func (q *query) flag(name string) bool {
	if !q.values.Has(name) {
		return false
	}
	set, err := strconv.ParseBool(q.values.Get(name))
	if err != nil {
		q.fail(name, "%q is neither true nor false", q.values.Get(name))
	}
	return set
}

// number reads a whole number of at least 0; absent is 0.
func (q *query) number(name string) int64 {
	if !q.values.Has(name) {
		return 0
	}
	n, err := strconv.ParseInt(q.values.Get(name), 10, 64)
	if err != nil || n < 0 {
		q.fail(name, "%q is not a whole number of at least 0", q.values.Get(name))
	}
	return n
}

// oneOf reads one of the legal values; absent is the first of them.
func (q *query) oneOf(name string, legal ...string) string {
	if !q.values.Has(name) {
		return legal[0]
	}
	v := q.values.Get(name)
	if !slices.Contains(legal, v) {
		q.fail(name, "%q is none of %s", v, strings.Join(legal, ", "))
	}
	return v
}

// labels reads label=KEY=VALUE, any number of times.
func (q *query) labels() map[string]string {
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

// states reads state=STATE, any number of times.
func states[S ~string](q *query, known []S) []S {
	var in []S
	for _, v := range q.values["state"] {
		if !slices.Contains(known, S(v)) {
			q.fail("state", "%q is no state; the states are %v", v, known)
		}
		in = append(in, S(v))
	}
	return in
}

// page reads after and limit, which is most if absent.
func (q *query) page(most int) store.Page {
	p := store.Page{After: q.number("after"), Limit: int(q.number("limit"))}
	if p.Limit > most {
		q.fail("limit", "%d is more than %d", p.Limit, most)
	}
	if p.Limit == 0 {
		p.Limit = most
	}
	return p
}

// filter reads all and the page.
func (q *query) filter() store.Filter {
	return store.Filter{All: q.flag("all"), Page: q.page(api.MaxPage)}
}

// timeout reads timeout_s: how long a wait may take; absent or longer than api.MaxWait is that.
func (q *query) timeout() time.Duration {
	if !q.values.Has("timeout_s") {
		return api.MaxWait
	}
	s, err := strconv.ParseFloat(q.values.Get("timeout_s"), 64)
	if err != nil || !(s >= 0) { // not s < 0: NaN
		q.fail("timeout_s", "%q is not a number of seconds of at least 0", q.values.Get("timeout_s"))
		return 0
	}
	return time.Duration(min(s, api.MaxWait.Seconds()) * float64(time.Second))
}

// optional looks up what a parameter names, if it is there.
func optional[ID ~int64](q *query, name string, find func(ref string) (ID, error)) (ID, error) {
	if !q.values.Has(name) {
		return 0, nil
	}
	return find(q.values.Get(name))
}

// oneMore asks for an item more than the page has: whether there is one decides about a next page.
func oneMore(p store.Page) store.Page {
	p.Limit++
	return p
}

// listOf makes a page of items, which were asked for with oneMore.
func listOf[T any](items []T, limit int, id func(T) int64) api.List[T] {
	l := api.List[T]{Items: items}
	if len(items) > limit {
		l.Items = items[:limit]
		l.Next = strconv.FormatInt(id(items[limit-1]), 10)
	}
	return whole(l.Items, l.Next)
}

// whole makes a list of items; no items are [] in JSON, not null.
func whole[T any](items []T, next string) api.List[T] {
	if items == nil {
		items = []T{}
	}
	return api.List[T]{Items: items, Next: next}
}

// idParam reads the number that names an object in the path.
func idParam[ID ~int64](c echo.Context) (ID, error) {
	n, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.NotFound, "id", "%q is not an id", c.Param("id"))
	}
	return ID(n), nil
}

// pathParam reads a parameter of the path. Echo leaves escapes in it if the path was written in an
// unusual way.
func pathParam(c echo.Context, name string) string {
	v := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v // unreachable: net/http refuses a path with a bad escape
}
