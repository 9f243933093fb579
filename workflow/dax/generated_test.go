package dax_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dax"
)

// Workflows that the generator of Pegasus made, each folder with an index of them. Five small ones are in the
// repository; all 285, and a gallery that is often cited, may lie beside it.
const (
	generated    = "testdata/generated"
	allGenerated = "../../../shared/data/dax"
	gallery      = "../../../shared/data/gallery"
)

// Every generated workflow reads without error, and with the numbers that its index gives.
func TestGeneratedWorkflows(t *testing.T) {
	t.Parallel()
	checkGenerated(t, generated, 5, func(string) bool { return true })
	if _, err := os.Stat(allGenerated); err == nil { // the rest are for the long tests
		checkGenerated(t, allGenerated, 285, func(file string) bool { return strings.Contains(file, ".n.100.0.") })
	}
}

// checkGenerated reads the files of an index with n rows that some picks.
func checkGenerated(t *testing.T, dir string, n int, some func(file string) bool) {
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
		if some(row[0]) {
			t.Run(row[0], func(t *testing.T) {
				t.Parallel()
				checkWorkflow(t, filepath.Join(dir, row[0]), row[1:])
			})
		}
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
		if math.Abs(got-want) > 0.0501 { // the index has one decimal
			t.Errorf("column %d is %v, want %v", k+1, got, want)
		}
	}
	if s := wf.Summary(); s.Unestimated != 0 || math.Abs(s.TotalWork-sum.Seconds()) > 0.001 {
		t.Errorf("%d tasks without an estimate, total work %v of %v", s.Unestimated, s.TotalWork, sum)
	}
	for _, w := range warnings { // of the generator's dialect
		if !strings.Contains(w.Message, "what its writer says counts") && !strings.Contains(w.Message, "by two tasks") {
			t.Errorf("warning: %s", w)
		}
	}
}

// ofGallery are the tasks and edges of the gallery's files, counted with a reader of XML in another language.
var ofGallery = map[string][2]int{
	"CyberShake_30": {30, 52}, "CyberShake_50": {50, 88}, "CyberShake_100": {100, 180}, "CyberShake_1000": {1000, 1988},
	"Epigenomics_24": {24, 27}, "Epigenomics_46": {47, 54}, "Epigenomics_100": {100, 122}, "Epigenomics_997": {997, 1234},
	"Inspiral_30": {30, 35}, "Inspiral_50": {50, 60}, "Inspiral_100": {100, 119}, "Inspiral_1000": {1000, 1233},
	"Montage_25": {25, 45}, "Montage_50": {50, 106}, "Montage_100": {100, 233}, "Montage_1000": {1000, 2485},
	"Sipht_30": {29, 33}, "Sipht_60": {58, 66}, "Sipht_100": {97, 109},
	"HEFT_paper": {10, 15}, "floodplain": {7, 10},
}

// The gallery reads with the tasks and edges that its files have.
func TestGallery(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join(gallery, "*.xml.gz"))
	if len(files) == 0 {
		return // it is not here
	}
	if len(files) != len(ofGallery) {
		t.Errorf("%d files, want %d", len(files), len(ofGallery))
	}
	for _, file := range files {
		wf, warnings, err := readFile(t, file)
		name := strings.TrimSuffix(filepath.Base(file), ".xml.gz")
		if want := ofGallery[name]; err != nil || len(wf.Tasks) != want[0] || wf.Graph.Edges() != want[1] {
			t.Errorf("%s: %v, want %v tasks and edges", name, err, want)
		}
		below := slices.ContainsFunc(warnings, func(w workflow.Warning) bool { return strings.Contains(w.Message, " below 0 is ignored") })
		if below != (name == "Epigenomics_997") {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
}
