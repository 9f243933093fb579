package server_test

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/server"
)

// TestFieldsAreRead: what is wrong with a field is said at its name, in one sentence, and nothing is done.
func TestFieldsAreRead(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	const hosts = "want a whole number from 1 to 10000"
	const seconds = "want a number of seconds from 10 to 31622400"
	for _, tc := range []struct{ fields, place, detail string }{
		{`"Hosts": 1`, "Hosts", "there is no such field; hosts is one"},
		{`"hosts": 1, "HOSTS": 2`, "HOSTS", "there is no such field; hosts is one"},
		{`"hosts": 1, "hosts": 1`, "hosts", "is given twice"},
		{`"hosts": 1, "ho\u0073ts": 1`, "hosts", "is given twice"},
		{`"hosts": 1, "labels": {"a": "1", "a": "2"}`, "labels.a", "is given twice"},
		{`"cpus": 1`, "hosts", "missing: " + hosts},
		{`"hosts": null`, "hosts", "null is no value: " + hosts},
		{`"hosts": "2"`, "hosts", hosts + ", not a string"},
		{`"hosts": true`, "hosts", hosts + ", not true"},
		{`"hosts": [1]`, "hosts", hosts + ", not an array"},
		{`"hosts": 0`, "hosts", "0 is not between 1 and 10000"},
		{`"hosts": 10001`, "hosts", "10001 is not between 1 and 10000"},
		{`"hosts": 1e12`, "hosts", "1e12 is not between 1 and 10000"},
		{`"hosts": 1e999`, "hosts", "1e999 is not between 1 and 10000"},
		{`"hosts": 99999999999999999999`, "hosts", "99999999999999999999 is not between 1 and 10000"},
		{`"hosts": 1e3`, "hosts", hosts + " in digits alone, not 1e3"},
		{`"hosts": 2.0`, "hosts", hosts + " in digits alone, not 2.0"},
		{`"hosts": 1, "retries": 1e12`, "retries", "1e12 is not between 0 and 1000"},
		{`"hosts": 1, "retries": null`, "retries", "null is no value: want a whole number from 0 to 1000, or leave it out"},
		{`"hosts": 1, "walltime_s": null`, "walltime_s", "null is no value: " + seconds},
		{`"hosts": 1, "walltime_s": "10m"`, "walltime_s", seconds + ", not a string"},
		{`"hosts": 1, "walltime_s": 1e300`, "walltime_s", "1e300 seconds is not between 10s and 8784h0m0s"},
		{`"hosts": 1, "walltime_s": 1`, "walltime_s", "1s is not between 10s and 8784h0m0s"},
		{`"hosts": 1, "idle_s": 0.5`, "idle_s", "500ms is not between 1s and 8784h0m0s"},
		{`"hosts": 1, "overlap_s": -1`, "overlap_s", "-1s is not between 0s and 8784h0m0s"},
		{`"hosts": 1, "not_before": "tomorrow"`, "not_before", `want a time such as 2026-01-31T08:00:00Z, not "tomorrow"`},
		{`"hosts": 1, "cluster": null`, "cluster", "null is no value: want a string, or leave it out"},
		{`"hosts": 1, "cluster": 7`, "cluster", "want a string, not 7"},
		{`"hosts": 1, "ccb": "a:1"`, "ccb", "want an array, not a string"},
		{`"hosts": 1, "ccb": ["a:1", null]`, "ccb[1]", "null is no value: want a string"},
		{`"hosts": 1, "ccb": ["a:1", 5]`, "ccb[1]", "want a string, not 5"},
		{`"hosts": 1, "ccb": null`, "ccb", "null is no value: want an array, or leave it out"},
		{`"hosts": 1, "not_before": null`, "not_before",
			"null is no value: want a time such as 2026-01-31T08:00:00Z, or leave it out"},
		{`"hosts": 1, "labels": {"a": null}`, "labels.a", "null is no value: want a string"},
		{`"hosts": 1, "labels": {"a": 1}`, "labels.a", "want a string, not 1"},
		{`"hosts": 1, "labels": [1]`, "labels", "want an object, not an array"},
		{`"hosts": 1,`, "body", "invalid character '}' looking for beginning of object key string"},
	} {
		body := `{"site": "local", ` + tc.fields + `}`
		status, p, _ := f.send(t, http.MethodPost, "/v1/glideins", body)
		if want := tc.place + ": " + tc.detail; status != http.StatusBadRequest || p.Place != tc.place || p.Detail != want {
			t.Errorf("%s: %d at %s: %s\nwant 400: %s", body, status, p.Place, p.Detail, want)
		}
	}
	if list := must(f.Glideins(t.Context(), api.Filter{All: true}))(t); len(list) != 0 {
		t.Errorf("glideins %v were created", list)
	}
}

// TestFieldsOfRuns: fields of an object in a request, paths, and a document that is read by somebody else.
func TestFieldsOfRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for _, tc := range []struct{ fields, place, detail string }{
		{`"options": {"retries": 1000000000000}`, "retries", "1000000000000 is not between 0 and 1000"},
		{`"options": {"retries": 1, "retries": 2}`, "retries", "is given twice"},
		{`"options": {"Retries": 1}`, "Retries", "there is no such field; retries is one"},
		{`"options": {"stall_s": 1e9}`, "stall_s", "277777h46m40s is not between 0s and 8784h0m0s"},
		{`"options": null`, "options", "null is no value: want an object"},
		{`"source_dir": "here"`, "source_dir", `"here" is not an absolute path`},
		{`"dir": "here"`, "dir", `"here" is not an absolute path`},
		{`"workflow": null`, "workflow", "is given twice"},
	} {
		body := `{"workflow": ` + chain + `, ` + tc.fields + `}`
		status, p, _ := f.send(t, http.MethodPost, "/v1/runs", body)
		if want := tc.place + ": " + tc.detail; status != http.StatusBadRequest || p.Place != tc.place || p.Detail != want {
			t.Errorf("%s: %d at %s: %s\nwant 400: %s", tc.fields, status, p.Place, p.Detail, want)
		}
	}
	status, p, _ := f.send(t, http.MethodPost, "/v1/runs", `{"workflow": null}`)
	const want = "workflow: null is no value: want a JSON document"
	if status != http.StatusBadRequest || p.Detail != want {
		t.Errorf("no workflow: %d %s, want 400 %s", status, p.Detail, want)
	}
	if runs := must(f.Runs(t.Context(), api.Filter{All: true}))(t); len(runs) != 0 {
		t.Errorf("runs %v were created", runs)
	}
}

// TestStrictReadingTakesTime: in proportion to the body, however deep it is and however many names it has. A request of
// the greatest length is read at once; what were quadratic would take hours.
func TestStrictReadingTakesTime(t *testing.T) {
	t.Parallel()
	f := start(t)
	var many strings.Builder
	for i := 0; many.Len() < api.MaxBody-1000; i++ {
		many.WriteString(`"` + strings.Repeat("a", 1+i%50) + string(rune('a'+i%26)) + time.Duration(i).String() + `": "", `)
	}
	for name, body := range map[string]string{
		"names": `{"labels": {` + many.String() + `"z": ""}}`,
		"lists": `{"labels": ` + strings.Repeat("[", api.MaxBody-1000) + `}`,
		"depth": strings.Repeat(`{"labels": `, (api.MaxBody-1000)/11),
	} {
		if status, p, _ := f.send(t, http.MethodPost, "/v1/glideins", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %+v, want 400", name, status, p)
		}
	}
}

// TestRangesMatchTheDocument: each number of a request has a range, which openapi.yaml says, too.
func TestRangesMatchTheDocument(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for name, v := range schemas {
		if !strings.HasPrefix(name, "New") && name != "StartCluster" && name != "SetSite" {
			continue
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			typ := f.Type
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			if !slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64}, typ.Kind()) {
				continue
			}
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			used[field] = true
			property := openAPIDoc(t).Components.Schemas[name].Value.Properties[field].Value
			if property.Min == nil || property.Max == nil {
				t.Errorf("%s.%s has no range in openapi.yaml", name, field)
				continue
			}
			if got, want := [2]float64{*property.Min, *property.Max}, server.Ranges()[field]; got != want {
				t.Errorf("%s.%s is from %v to %v in openapi.yaml, but %v", name, field, got[0], got[1], want)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(server.Ranges()))); diff != "" {
		t.Errorf("fields with a range (-requests +server):\n%s", diff)
	}
}

// TestLimitsOfASiteMayBeNull: in a change what is null stays, as the document says.
func TestLimitsOfASiteMayBeNull(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for body, want := range map[string]int{
		`{"max_queued": 3, "queue": null, "max_running": null}`: http.StatusOK,
		`{"max_queued": 1e12}`: http.StatusBadRequest,
	} {
		if status, p, _ := f.send(t, http.MethodPatch, "/v1/sites/local", body); status != want {
			t.Errorf("%s: %d %+v, want %d", body, status, p, want)
		}
	}
	if site := must(f.Site(t.Context(), "local"))(t); site.Limits != (corral.SiteLimits{MaxQueued: 3}) {
		t.Errorf("limits %+v", site.Limits)
	}
}
