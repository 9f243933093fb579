package lambda

import (
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

var update = flag.Bool("update", false, "write workflow.json anew")

func TestWorkflowFileIsGenerated(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(WorkflowFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := FS.ReadFile(WorkflowFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what generate makes; run the test with -update (-want +got):\n%s", WorkflowFile, diff)
	}
}

func wholeGenome(t *testing.T) string {
	t.Helper()
	f, err := Genome()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readWorkflow(t *testing.T) *workflow.Workflow {
	t.Helper()
	wf, _, err := formats.ReadFile(t.Context(), WorkflowFile, workflow.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return wf
}

func TestWorkflowIsRunnable(t *testing.T) {
	t.Parallel()
	wf := readWorkflow(t)
	if err := wf.Runnable(); err != nil {
		t.Error(err)
	}
	if n := len(wf.Tasks); n < 60 || n > 100 {
		t.Errorf("%d tasks, want 60 to 100", n)
	}
	for _, task := range wf.Tasks {
		if slices.Contains(task.Argv, "") {
			t.Errorf("%s has an empty argument, which the format forbids", task.ID)
		}
		if task.Estimate <= 0 || task.MemoryMiB <= 0 {
			t.Errorf("%s: estimate %s, memory %d MiB; want both", task.ID, task.Estimate, task.MemoryMiB)
		}
	}
	for _, name := range wf.OwnInputs() {
		if _, err := FS.Open(name); err != nil {
			t.Errorf("an input is not beside the workflow: %v", err)
		}
	}
}

// TestKnownBiology compares the report with published facts about phage lambda, so that a common error of the two
// computations would be found.
func TestKnownBiology(t *testing.T) {
	t.Parallel()
	genome, err := readFASTA(strings.NewReader(wholeGenome(t)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	writeHead(&b, count(genome, 1))
	if err := writeSites(&b, count(genome, 6)); err != nil {
		t.Fatal(err)
	}
	report := b.String()
	for _, want := range []string{
		"48502 bases, GC content 49.86 %",
		"EcoRI     GAATTC        5",
		"BamHI     GGATCC        5",
		"HindIII   AAGCTT        6",
		"XhoI      CTCGAG        1",
	} {
		if !strings.Contains(report, want+"\n") {
			t.Errorf("report lacks %q:\n%s", want, report)
		}
	}
}

func TestSinglePass(t *testing.T) {
	t.Parallel()
	// Checked by hand: of the 3-mers AAN is left out, and ACG and its reverse complement CGT are one word.
	report, err := SinglePass(strings.NewReader(">one\nacgt\nAA\n>two\nn\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"6 bases, GC content 33.33 %",
		"   1         6          2        2.0       0       4\n",
		"   2         5",
		"   3         4          3",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("report lacks %q:\n%s", want, report)
		}
	}
	if _, err := SinglePass(strings.NewReader(strings.Repeat("A", 1<<20))); err == nil {
		t.Error("no error for a line that is longer than the reader takes")
	}
}
