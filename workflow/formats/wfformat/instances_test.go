package wfformat_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// instances is a folder of five small published executions of production workflows (WfInstances), with an index.
const instances = "testdata/wfcommons/instances"

// Every published instance is read without error, and with the numbers of its index.
func TestPublishedInstances(t *testing.T) {
	t.Parallel()
	checkInstances(t, instances, 5)
}

func checkInstances(t *testing.T, dir string, n int) {
	f, err := os.Open(filepath.Join(dir, "INDEX.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+n {
		t.Fatalf("%s has %d rows, want a header and %d instances", dir, len(rows), n)
	}
	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			checkInstance(t, filepath.Join(dir, row[0]), rows[0], row)
		})
	}
}

// readInstance reads a compressed file.
func readInstance(t *testing.T, file string) (*workflow.Workflow, []workflow.Warning, error) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return wfformat.Read(t.Context(), text, file, workflow.Options{})
}

func checkInstance(t *testing.T, file string, header, row []string) {
	wf, warnings, err := readInstance(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 2 { // files of Nextflow contain the unknown fields repo and runName
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
		if math.Abs(value-want) > 0.0501 { // the index has one decimal place
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
