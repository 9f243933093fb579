package fork_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

func TestSurveyOfFork(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "with $blank and 'quote", "site")
	before := time.Now().Add(-time.Second)
	facts, err := fork.New(local.Conn{}, root).Survey(t.Context(), corral.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := nodecheck.MemoryMiB(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	q := facts.Queues[0]
	if facts.Batch != "fork" || len(facts.Queues) != 1 || q.CPUs != runtime.NumCPU() || q.MemoryMiB != memory || !q.Default {
		t.Errorf("Survey() = %+v; want %d cpus and %d MiB", facts, runtime.NumCPU(), memory)
	}
	if facts.FreeMiB <= 0 || facts.At.Before(before) || facts.Outbound != nil || len(facts.Notes) > 0 {
		t.Errorf("Survey() = %+v", facts)
	}
	if _, err := os.Stat(filepath.Dir(root)); !os.IsNotExist(err) {
		t.Errorf("a survey left something: %v", err)
	}
}
