package plan_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// TestDocument: decoding the document of a row returns the plan that was encoded into it.
func TestDocument(t *testing.T) {
	t.Parallel()
	want := &plan.Plan{Workflow: "w", Feasible: true, Pilots: []plan.Pilot{{Site: "a",
		Shape: corral.Shape{Hosts: 2, CPUs: 4}}},
		Point: plan.Point{Makespan: 90e9}}
	row := corral.Plan{ID: 7}
	if err := want.Encode(&row); err != nil || !strings.HasPrefix(row.Digest, "sha256:") || len(row.Digest) != 7+64 {
		t.Fatalf("Encode: %v, digest %q", err, row.Digest)
	}
	got, err := plan.Decode(row)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Decode: %v %s", err, diff)
	}
	before := row
	if err := (&plan.Plan{Waste: math.NaN()}).Encode(&row); err == nil || !cmp.Equal(before, row) {
		t.Errorf("a plan without JSON: %v, row %+v, want an error and the row as before", err, row)
	}
	row.Document = json.RawMessage(`{"pilots": 1}`)
	if _, err := plan.Decode(row); err == nil || !strings.HasPrefix(err.Error(), "reading plan 7: ") {
		t.Errorf("a damaged document: %v", err)
	}
}
