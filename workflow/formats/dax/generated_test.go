package dax_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dax"
)

// generated is a folder of five small workflows created by the Pegasus generator, with an index.
const generated = "testdata/generated"

// Every generated workflow is read without error, and with the numbers of its index.
func TestGeneratedWorkflows(t *testing.T) {
	t.Parallel()
	checkGenerated(t, generated, 5)
}

// checkGenerated reads the files of an index with n rows.
func checkGenerated(t *testing.T, dir string, n int) {
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
		t.Fatalf("%s has %d rows, want a header and %d workflows", dir, len(rows), n)
	}
	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			checkWorkflow(t, filepath.Join(dir, row[0]), row[1:])
		})
	}
}

// readFile reads a compressed file.
func readFile(t testing.TB, file string) (*workflow.Workflow, []workflow.Warning, error) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return dax.Read(t.Context(), text, file, workflow.Options{})
}

func checkWorkflow(t *testing.T, file string, row []string) {
	wf, warnings, err := readFile(t, file)
	if err != nil {
		t.Fatal(err)
	}
	var sum, most time.Duration
	for _, task := range wf.Tasks {
		sum += task.Runtime
		most = max(most, task.Runtime)
	}
	for k, got := range []float64{float64(len(wf.Tasks)), float64(wf.Graph.Edges()), sum.Seconds(), most.Seconds()} {
		want, err := strconv.ParseFloat(row[k], 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-want) > 0.0501 { // the index has one decimal place
			t.Errorf("column %d is %v, want %v", k+1, got, want)
		}
	}
	if s := wf.Summary(); s.Unestimated != 0 || math.Abs(s.TotalWork-sum.Seconds()) > 0.001 {
		t.Errorf("%d tasks without an estimate, total work %v of %v", s.Unestimated, s.TotalWork, sum)
	}
	for _, w := range warnings { // about the generator's dialect
		if !strings.Contains(w.Message, "size is used") && !strings.Contains(w.Message, "by two tasks") {
			t.Errorf("warning: %s", w)
		}
	}
}
