package server_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/corral-pilot/corral"
)

var parameter = regexp.MustCompile(`{[a-z]+}`)

// TestQueriesAreRead: all routes parse their parameters in the same way, which refuses unknown and invalid ones, and
// a single-valued parameter that is given twice. The place is the parameter.
func TestQueriesAreRead(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for path, item := range openAPIDoc(t).Paths.Map() {
		target := parameter.ReplaceAllString(path, "1")
		for method, operation := range item.Operations() {
			body := ""
			if operation.RequestBody != nil {
				body = "{}"
			}
			refused := map[string]string{"?nothing=1": "nothing", "?a=%zz": "a", "?%zz": "%zz", "?all=true;limit=1": "all"}
			for _, p := range operation.Parameters {
				if p := p.Value; p.In == openapi3.ParameterInQuery && !p.Schema.Value.Type.Is(openapi3.TypeArray) {
					refused["?"+p.Name+"=1&"+p.Name+"=1"] = p.Name
				}
			}
			for query, place := range refused {
				status, p, _ := f.send(t, method, target+query, body)
				if status != http.StatusBadRequest || p.Kind != corral.Invalid || p.Place != place {
					t.Errorf("%s %s: %d %+v, want 400 at %s", method, target+query, status, p, place)
				}
			}
		}
	}
}

// TestRepeatedParameters: parameters that may be given several times for a list.
func TestRepeatedParameters(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, target := range []string{"/v1/glideins?label=a=1&label=b=2", "/v1/runs?state=RUNNING&state=FAILED"} {
		if status, _, body := f.send(t, http.MethodGet, target, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
	status, p, _ := f.send(t, http.MethodGet, "/v1/glideins?label=a=1&label=a=2", "")
	if status != http.StatusBadRequest || p.Place != "label" {
		t.Errorf("two values of one label: %d %+v, want 400", status, p)
	}
}
