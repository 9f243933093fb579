package lambda

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/format"
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

// TestWorkflowArrivesAtExpected runs the whole workflow, one task after the other and each in a
// directory with nothing but its declared inputs, and compares its report with that of the single pass. The genome is
// the first tenth of lambda's: with all of it, the demo does the same.
func TestWorkflowArrivesAtExpected(t *testing.T) {
	t.Parallel()
	data, genome := t.TempDir(), firstTenth(t)
	if err := os.CopyFS(data, FS); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, genome)
	if err := errors.Join(err, w.Close(), os.WriteFile(filepath.Join(data, GenomeFile), packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	wf := readWorkflow(t)
	for _, i := range wf.Graph.Order() {
		runTask(t, data, wf.Tasks[i])
	}
	got, err := os.ReadFile(filepath.Join(data, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := SinglePass(strings.NewReader(genome))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("report of the workflow and of the single pass differ (-single +workflow):\n%s", diff)
	}
}

// firstTenth returns the first lines of the genome's file.
func firstTenth(t *testing.T) string {
	t.Helper()
	lines := strings.SplitAfter(wholeGenome(t), "\n")
	return strings.Join(lines[:len(lines)/10], "")
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
	wf, _, err := format.ReadFile(t.Context(), WorkflowFile, workflow.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return wf
}

// runTask runs one task in a directory of its own and moves its outputs to data.
func runTask(t *testing.T, data string, task workflow.Task) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range task.Inputs {
		if err := os.Symlink(filepath.Join(data, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(task.Argv[0], task.Argv[1:]...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	for name, value := range task.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if name := task.Stdin; name != "" {
		in, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if name := task.Stdout; name != "" {
		out, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("task %s, %v: %v\n%s", task.ID, cmd.Args, err, stderr.String())
	}
	for _, name := range task.Outputs {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(data, name)); err != nil {
			t.Fatalf("task %s: %v", task.ID, err)
		}
	}
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

// TestKnownBiology compares with what is published of phage lambda, so that the two ways of computing
// the report cannot be wrong together.
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
	// Read by hand: of the 3-mers AAN is left out, ACG and its reverse complement CGT are one word.
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
