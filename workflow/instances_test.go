package workflow_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// instances holds published executions of production workflows (WfInstances), see the README there.
// It lies beside the repository.
const instances = "../../shared/data/wfinstances"

// Every published instance reads without error, and with the numbers that its index gives.
func TestPublishedInstances(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(instances, "INDEX.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 89 {
		t.Fatalf("%d rows, want a header and 88 instances", len(rows))
	}
	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			checkInstance(t, rows[0], row)
		})
	}
}

func checkInstance(t *testing.T, header, row []string) {
	wf, warnings, err := workflow.ReadFile(filepath.Join(instances, row[0]), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 2 { // Nextflow's have the unknown fields repo and runName
		t.Errorf("warnings: %v", warnings)
	}
	s := wf.Summary()
	var sum time.Duration
	for _, task := range wf.Tasks {
		sum += task.Runtime
	}
	got := map[string]float64{
		"tasks":           float64(s.Tasks),
		"edges":           float64(s.Edges),
		"levels":          float64(s.Levels),
		"maxwidth":        float64(s.Width),
		"sum_runtime_s":   s.TotalWork,
		"critical_path_s": time.Duration(s.CriticalPath).Seconds(),
		"makespan_s":      wf.Makespan.Seconds(),
		"files":           float64(len(wf.FileSizes)),
	}
	for k, name := range header {
		value, known := got[name]
		if !known {
			continue
		}
		want, err := strconv.ParseFloat(row[k], 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(value-want) > 0.0501 { // the index has one decimal
			t.Errorf("%s = %v, want %v", name, value, want)
		}
		delete(got, name)
	}
	if len(got) != 0 {
		t.Errorf("not in the index: %v", got)
	}
	if math.Abs(sum.Seconds()-s.TotalWork) > 0.001 {
		t.Errorf("total work %v, measured runtimes %v", s.TotalWork, sum.Seconds())
	}
}
