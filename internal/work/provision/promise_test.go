package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan"
)

// TestPromiseOfManyTasks: revisions read the estimates of a plan even if its schedule is stored separately.
func TestPromiseOfManyTasks(t *testing.T) {
	t.Parallel()
	db := storetest.OpenTest(t)
	document := plan.Plan{Feasible: true, Point: plan.Point{Makespan: corral.Seconds(time.Hour)}}
	for i := range plan.MostWithin + 1 {
		document.Schedule = append(document.Schedule, plan.Placement{ID: fmt.Sprint("t", i), Start: 1e9, End: 3e9})
	}
	schedule, err := db.NewSchedule(document.Detach)
	if err != nil {
		t.Fatal(err)
	}
	row := corral.Plan{ID: 7, Digest: "sha256:" + strings.Repeat("a", 64)}
	if row.Document, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	if _, err := promised(db, row, true); corral.KindOf(err) != corral.NotFound {
		t.Errorf("without its schedule: %v, want NotFound", err)
	}
	err = storetest.All(db).Write(t.Context(), store.Actor, func(tx *store.Tx) error { return schedule.Keep(tx, row) })
	said, err2 := promised(db, row, true)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if len(said.runtimes) != plan.MostWithin+1 || said.runtimes["t5"] != 2*time.Second || said.document.Schedule != nil {
		t.Errorf("%d runtimes, of t5 %s; want %d, 2s", len(said.runtimes), said.runtimes["t5"], plan.MostWithin+1)
	}
}
