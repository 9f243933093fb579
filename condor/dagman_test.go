//go:build sites

package condor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
)

// TestDAGManRuns runs a DAG with DAGMan, another of HTCondor's schedulers, on the pool.
func TestDAGManRuns(t *testing.T) {
	t.Parallel()
	p := common(t)
	dir := dagFolder(t)
	twoNodes(t, p, dir)
	runDAG(t, p, dir, "two.dag")
	if out, err := os.ReadFile(filepath.Join(dir, "order")); err != nil || strings.Count(string(out), "\n") != 2 {
		t.Errorf("order = %q, %v, want two lines", out, err)
	}
}

// TestDAGManTakesRescueFile runs two nodes, one of which is done in a rescue file like corrald's.
func TestDAGManTakesRescueFile(t *testing.T) {
	t.Parallel()
	p := common(t)
	dir := dagFolder(t)
	twoNodes(t, p, dir)
	const name = "two.dag.rescue001"
	rescue, err := os.ReadFile(filepath.Join("../workflow/formats/dagman/testdata", name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), rescue, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	runDAG(t, p, dir, "two.dag")
	if out, err := os.ReadFile(filepath.Join(dir, "order")); err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("order = %q, %v, want one line: of the node that is not done", out, err)
	}
}

// twoNodes writes two.dag, whose nodes each append a line to the file order.
func twoNodes(t *testing.T, p *Pool, dir string) {
	t.Helper()
	var node strings.Builder
	job := sh(p, "node", "echo $0 >>order")
	job.Dir, job.Log, job.BatchName = dir, "nodes.log", ""
	if _, err := job.WriteTo(&node); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"node.sub": node.String(), "two.dag": "JOB a node.sub\nJOB b node.sub\nPARENT a CHILD b\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDAGManRunsTheExample runs the example for corral run with DAGMan.
func TestDAGManRunsTheExample(t *testing.T) {
	t.Parallel()
	p := common(t)
	dir := dagFolder(t)
	if err := os.CopyFS(dir, os.DirFS("../examples/dagman")); err != nil {
		t.Fatal(err)
	}
	runDAG(t, p, dir, "words.dag")
	words, err := os.ReadFile(filepath.Join(dir, "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(words))))), "\n") + "\n"
	if got, err := os.ReadFile(filepath.Join(dir, "merged.txt")); err != nil || string(got) != want {
		t.Errorf("merged.txt = %q, %v, want %q", got, err, want)
	}
}

// TestDAGManRunsTheCheckedExample runs the example of the checks of a run with DAGMan. The files are the same as those
// of corral run (internal/cli/testdata/script/dagman.txtar).
func TestDAGManRunsTheCheckedExample(t *testing.T) {
	t.Parallel()
	p := common(t)
	dir := dagFolder(t)
	if err := os.CopyFS(dir, os.DirFS("../examples/dagman")); err != nil {
		t.Fatal(err)
	}
	runDAG(t, p, dir, "checked.dag")
	for name, want := range map[string][]string{
		"report.txt":   {"3 left.txt", "3 right.txt"},
		"returned.txt": {"left 0", "report 0", "right 0", "shallow 0"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		lines := slices.Sorted(strings.Lines(strings.TrimSpace(string(text))))
		for k := range lines {
			lines[k] = strings.TrimSpace(lines[k])
		}
		if err != nil || !slices.Equal(lines, want) {
			t.Errorf("%s = %q, %v, want %q", name, lines, err, want)
		}
	}
}

// dagFolder creates a folder for a DAG: DAGMan rejects logs in /tmp.
func dagFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "condor-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// runDAG runs a folder's DAG with DAGMan and expects success.
func runDAG(t *testing.T, p *Pool, dir, dag string) {
	t.Helper()
	if err := p.owner.give(dir); err != nil {
		t.Fatal(err)
	}
	cmd := p.Tools().command(soon(t), "condor_submit_dag", dag)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("condor_submit_dag: %v\n%s", err, out)
	}
	log := eventlog.File{Path: filepath.Join(dir, dag+".dagman.log")}
	eventually(t, "end of the DAG", func() (bool, error) {
		for event := range log.New(time.Now()) {
			if end, ok := event.Detail.(eventlog.Terminated); ok {
				if end != (eventlog.Terminated{}) {
					t.Errorf("DAGMan ended with %+v", end)
				}
				return true, nil
			}
		}
		return false, nil
	})
}
