package server_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/work/request"
)

// TestRangesMatchTheDocument: each number in a request has the range in openapi.yaml: its limits are accepted, and
// values beyond them are refused at the field.
func TestRangesMatchTheDocument(t *testing.T) {
	t.Parallel()
	others := []string{"StartCluster", "SetSite", "OutputFile", "TaskWait"} // whole requests, and parts of some
	for name, v := range schemas {
		if !strings.HasPrefix(name, "New") && !slices.Contains(others, name) {
			continue
		}
		for field, ref := range openAPIDoc(t).Components.Schemas[name].Value.Properties {
			property := ref.Value
			if !property.Type.Includes(openapi3.TypeInteger) && !property.Type.Includes(openapi3.TypeNumber) {
				continue
			}
			if property.Min == nil || property.Max == nil {
				t.Errorf("%s.%s has no range in openapi.yaml", name, field)
				continue
			}
			for n, legal := range map[float64]bool{*property.Min: true, *property.Max: true, *property.Min - 1: false, *property.Max + 1: false} {
				body := fmt.Sprintf("{%q: %.0f}", field, n)
				err := request.Decode([]byte(body), reflect.New(reflect.TypeOf(v)).Interface())
				if refused := err != nil && api.ProblemOf(err).Place == field; refused == legal {
					t.Errorf("%s %s: %v, against openapi.yaml", name, body, err)
				}
			}
		}
	}
}

// TestLimitsOfASiteMayBeNull: in a change, null leaves a value unchanged, as documented.
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
