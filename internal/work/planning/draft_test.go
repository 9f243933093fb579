package planning

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// TestAPlanThatCannotBeWrittenLeavesNoSchedule: a schedule without the row of its plan would never be deleted.
func TestAPlanThatCannotBeWrittenLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	made := &plan.Plan{Feasible: true, Waste: math.NaN(), Schedule: make([]plan.Placement, plan.MostWithin+1)}
	if _, err := write(t.Context(), db, &corral.Plan{}, made, false); err == nil {
		t.Error("a plan is written that has no JSON")
	}
	if files, err := filepath.Glob(path + "-schedules/*"); len(files) != 0 || err != nil {
		t.Errorf("files %q, %v; want none", files, err)
	}
}
