package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// A run whose directory or data folder is removed ends FAILED with the reason: soon after the removal if a long task is
// running, and at its end if all tasks are over. Its running tasks are detached.
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

// Other errors of a run's directory may be temporary: a run continues while its directory cannot be read.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := &plan{dir: filepath.Join(t.TempDir(), strings.Repeat("x", 300))} // ENAMETOOLONG, not ENOENT
	if got := p.gone(); got != "" {
		t.Errorf("gone() = %q", got)
	}
}
