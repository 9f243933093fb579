package request

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// TestFieldsAreRead: an error in a field is reported at its name, in one sentence.
func TestFieldsAreRead(t *testing.T) {
	t.Parallel()
	const hosts = "want a whole number from 1 to 10000"
	const seconds = "want a number of seconds from 10 to 31622400"
	for _, tc := range []struct{ fields, place, detail string }{
		{`"Hosts": 1`, "Hosts", "there is no such field; hosts is one"},
		{`"hosts": 1, "HOSTS": 2`, "HOSTS", "there is no such field; hosts is one"},
		{`"hosts": 1, "hosts": 1`, "hosts", "is given twice"},
		{`"hosts": 1, "ho\u0073ts": 1`, "hosts", "is given twice"},
		{`"hosts": 1, "labels": {"a": "1", "a": "2"}`, "labels.a", "is given twice"},
		{`"cpus": 1`, "hosts", "missing: " + hosts},
		{`"hosts": null`, "hosts", "null is not allowed: " + hosts},
		{`"hosts": "2"`, "hosts", hosts + ", not a string"},
		{`"hosts": true`, "hosts", hosts + ", not true"},
		{`"hosts": [1]`, "hosts", hosts + ", not an array"},
		{`"hosts": 0`, "hosts", "0 is not between 1 and 10000"},
		{`"hosts": 10001`, "hosts", "10001 is not between 1 and 10000"},
		{`"hosts": 1e12`, "hosts", "1e12 is not between 1 and 10000"},
		{`"hosts": 1e999`, "hosts", "1e999 is not between 1 and 10000"},
		{`"hosts": 99999999999999999999`, "hosts", "99999999999999999999 is not between 1 and 10000"},
		{`"hosts": 1e3`, "hosts", hosts + ", in digits only, not 1e3"},
		{`"hosts": 2.0`, "hosts", hosts + ", in digits only, not 2.0"},
		{`"hosts": 1, "retries": 1e12`, "retries", "1e12 is not between 0 and 1000"},
		{`"hosts": 1, "retries": null`, "retries", "null is not allowed: want a whole number from 0 to 1000, or leave it out"},
		{`"hosts": 1, "walltime_s": null`, "walltime_s", "null is not allowed: " + seconds},
		{`"hosts": 1, "walltime_s": "10m"`, "walltime_s", seconds + ", not a string"},
		{`"hosts": 1, "walltime_s": 1e300`, "walltime_s", "1e300 seconds is not between 10s and 8784h0m0s"},
		{`"hosts": 1, "walltime_s": 1`, "walltime_s", "1s is not between 10s and 8784h0m0s"},
		{`"hosts": 1, "idle_s": 0.5`, "idle_s", "500ms is not between 1s and 8784h0m0s"},
		{`"hosts": 1, "overlap_s": -1`, "overlap_s", "-1s is not between 0s and 8784h0m0s"},
		{`"hosts": 1, "not_before": "tomorrow"`, "not_before", `want a time such as 2026-01-31T08:00:00Z, not "tomorrow"`},
		{`"hosts": 1, "cluster": null`, "cluster", "null is not allowed: want a string, or leave it out"},
		{`"hosts": 1, "cluster": 7`, "cluster", "want a string, not 7"},
		{`"hosts": 1, "ccb": "a:1"`, "ccb", "want an array, not a string"},
		{`"hosts": 1, "ccb": ["a:1", null]`, "ccb[1]", "null is not allowed: want a string"},
		{`"hosts": 1, "ccb": ["a:1", 5]`, "ccb[1]", "want a string, not 5"},
		{`"hosts": 1, "ccb": null`, "ccb", "null is not allowed: want an array, or leave it out"},
		{`"hosts": 1, "not_before": null`, "not_before",
			"null is not allowed: want a time such as 2026-01-31T08:00:00Z, or leave it out"},
		{`"hosts": 1, "labels": {"a": null}`, "labels.a", "null is not allowed: want a string"},
		{`"hosts": 1, "labels": {"a": 1}`, "labels.a", "want a string, not 1"},
		{`"hosts": 1, "labels": [1]`, "labels", "want an object, not an array"},
		{`"hosts": 1,`, "body", "invalid character '}' looking for beginning of object key string"},
	} {
		body := `{"site": "local", ` + tc.fields + `}`
		refused(t, body, Decode([]byte(body), &api.NewGlidein{}), tc.place, tc.detail)
	}
}

// refused checks that a request is Invalid, at the given place and for the given reason.
func refused(t *testing.T, body string, err error, place, detail string) {
	t.Helper()
	if want := place + ": " + detail; err == nil || corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("%s: %v\nwant %s", body, err, want)
	}
}

// TestFieldsOfRuns: fields of an object in a request, paths, and a document that another package reads.
func TestFieldsOfRuns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ fields, place, detail string }{
		{`"options": {"retries": 1000000000000}`, "retries", "1000000000000 is not between 0 and 1000"},
		{`"options": {"retries": 1, "retries": 2}`, "retries", "is given twice"},
		{`"options": {"Retries": 1}`, "Retries", "there is no such field; retries is one"},
		{`"options": {"stall_s": 1e9}`, "stall_s", "277777h46m40s is not between 0s and 8784h0m0s"},
		{`"options": null`, "options", "null is not allowed: want an object"},
		{`"source_dir": "here"`, "source_dir", `"here" is not an absolute path`},
		{`"dir": "here"`, "dir", `"here" is not an absolute path`},
		{`"workflow": null`, "workflow", "is given twice"},
	} {
		body := `{"workflow": {"name": "w"}, ` + tc.fields + `}`
		var in api.NewRun
		err := Decode([]byte(body), &in)
		if err == nil {
			err = CheckRun(in)
		}
		refused(t, body, err, tc.place, tc.detail)
	}
	const none = `{"workflow": null}`
	refused(t, none, Decode([]byte(none), &api.NewRun{}), "workflow", "null is not allowed: want a JSON document, or leave it out")
}

// TestDecodingTakesTime: the time is proportional to the length of the body, regardless of its depth and its number of
// names. A request of maximum length is read immediately; quadratic time would be hours.
func TestDecodingTakesTime(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := 0; many.Len() < api.MaxBody-1000; i++ {
		many.WriteString(`"` + strings.Repeat("a", 1+i%50) + string(rune('a'+i%26)) + time.Duration(i).String() + `": "", `)
	}
	for name, body := range map[string]string{
		"names": `{"labels": {` + many.String() + `"z": ""}}`,
		"lists": `{"labels": ` + strings.Repeat("[", api.MaxBody-1000) + `}`,
		"depth": strings.Repeat(`{"labels": `, (api.MaxBody-1000)/11),
	} {
		if err := Decode([]byte(body), &api.NewGlidein{}); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: %v, want it Invalid", name, err)
		}
	}
}
