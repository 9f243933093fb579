package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// Each task has a directory for temporary files that is empty when the task starts, and is emptied when it ends.
func TestTemporaryFilesAreRemovedWithTheirTask(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	left := filepath.Join(base, "1", "of an instance that died")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Scratch, c.CPUs = base, 2 })
	script := fmt.Sprintf(`ls -A "$TMPDIR"; mkdir -p "$TMPDIR/d/e"; echo >"$TMPDIR/d/e/f"; case $TMPDIR in '%s'/*) ;; *) exit 3; esac`, base)
	var tasks []execution.Task
	for i := range 3 {
		tasks = append(tasks, execution.Task{Index: i, ID: fmt.Sprint("t", i), Attempt: 1, Estimate: time.Second, Argv: []string{"sh", "-c", script}})
	}
	b.d.Submit([]execution.Job{{Run: 1, Seq: 1, Dir: b.dir, CPUs: 1, MemoryMiB: 100, Tasks: tasks}})
	b.sink.awaitResults(t, len(tasks))
	results, _ := b.sink.seen()
	for _, res := range results {
		if res.Status != execution.Done {
			t.Errorf("task %d is %s (%s)", res.Index, res.Status, res.Reason)
		}
	}
	for _, task := range tasks {
		if got := read(t, b.dir, executor.TasksDir, task.ID+".1", "stdout"); got != "" {
			t.Errorf("%s found %q", task.ID, got)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(base, "*"))
	if err != nil || len(dirs) != 1 {
		t.Errorf("directories %v (%v), want one that all tasks had", dirs, err)
	}
	if files, err := filepath.Glob(filepath.Join(base, "*", "*")); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v (%v)", files, err)
	}
}
