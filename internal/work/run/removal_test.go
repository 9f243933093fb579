package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A run whose directory, or its data, is removed ends FAILED and says why, soon after it happened in the middle of a
// long task, and at its end when nothing is left to be done. What ran then is let go of.
func TestRemovedDirectoryEndsTheRun(t *testing.T) {
	for name, removed := range map[string]func(dir string) string{
		"directory": func(dir string) string { return dir },
		"data":      func(dir string) string { return filepath.Join(dir, executor.DataDir) },
		"journal":   func(dir string) string { return filepath.Join(dir, journalFile) },
	} {
		for at, takes := range map[string]time.Duration{"long task": time.Hour, "last task": time.Second} {
			t.Run(name+" in the "+at, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					c := newSimCluster(oneWorker())
					w := newWorld(t, c)
					defer w.stop()
					dir := filepath.Join(t.TempDir(), "run")
					c.run = func(task execution.Task) (execution.Status, time.Duration) {
						if task.ID != "z" {
							return execution.Done, time.Second
						}
						if err := os.RemoveAll(removed(dir)); err != nil {
							t.Error(err)
						}
						return execution.Done, takes
					}
					began := time.Now()
					row := w.awaitOver(w.create(api.NewRun{Dir: dir, Workflow: document(fan(1, 1)...)}).ID)
					if row.State != corral.RunFailed || row.Reason != removed(dir)+" was removed during the run" {
						t.Errorf("run is %s: %s", row.State, row.Reason)
					}
					if took := time.Since(began); took > 10*time.Second {
						t.Errorf("it took %s to be seen", took)
					}
					if _, err := os.Stat(dir); name == "directory" && err == nil {
						t.Error("it was made again")
					}
				})
			})
		}
	}
}

// Everything else that is wrong with a run's directory may pass: a run goes on while its directory cannot be read.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := &plan{dir: filepath.Join(t.TempDir(), strings.Repeat("x", 300))} // ENAMETOOLONG: not that it is not there
	if got := p.gone(); got != "" {
		t.Errorf("gone() = %q", got)
	}
}
