package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// Tests of a task's limits at its worker: memory and threads.

// takes returns a shell command that holds mib MiB of memory until it is killed.
func takes(mib int) string {
	return fmt.Sprintf("(head -c %d /dev/zero; exec sleep 600) | tail", mib<<20)
}

// A task without a memory request receives a share of its worker's memory in proportion to its CPUs; after it is
// killed, the other tasks of its clustered job continue.
func TestMemoryShareOfAWorker(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.CPUs, c.MemoryMiB = 4, 400 })
	j := sh(1, b.dir, takes(300))
	j.MemoryMiB, j.CPUs = 0, 2
	j.Tasks = append(j.Tasks, shTask(2, "true"))
	b.d.Submit([]execution.Job{j})
	b.sink.awaitResults(t, 2)
	results, _ := b.sink.seen()
	r := results[0]
	if r.Status != execution.Failed || r.Cause != execution.OverMemory || r.MaxRSSKiB < 200<<10 ||
		!strings.Contains(r.Reason, " the 200 MiB of memory that its share of the worker allows") {
		t.Errorf("result = %+v, want a failure for memory", r)
	}
	if r = results[1]; r.Status != execution.Done || r.Cause != "" {
		t.Errorf("the task after it: %+v", r)
	}
	if rec := read(t, b.dir, executor.TasksDir, j.Tasks[0].ID+".1", executor.RecordFile); !strings.Contains(rec, `"cause":"memory"`) {
		t.Errorf("record %s does not tell the cause", rec)
	}
}

// A task whose files travel has the same memory limit as a task that sees its run's directory.
func TestMemoryOfATaskWhoseFilesTravel(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Scratch = t.TempDir() })
	j := sh(1, b.dir, takes(200))
	j.Mark = "another directory"
	b.d.Submit([]execution.Job{j})
	if r := b.sink.awaitResults(t, 1)[1]; r.Cause != execution.OverMemory || r.Travel.Bytes == 0 {
		t.Errorf("result = %+v, want a failure for memory of a task that travelled", r)
	}
}

// The thread count for libraries equals the task's CPUs, unless the task or the worker's own environment sets another
// number; only the task itself may set a number above its CPUs.
func TestThreadsOfATask(t *testing.T) {
	t.Setenv("JULIA_NUM_THREADS", "1")
	t.Setenv("OMP_NUM_THREADS", "2,1")
	t.Setenv("GOMAXPROCS", "64")
	t.Setenv("RAYON_NUM_THREADS", "many")
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.CPUs = 3 })
	const show = "echo $OMP_NUM_THREADS $MKL_NUM_THREADS $JULIA_NUM_THREADS $GOMAXPROCS $RAYON_NUM_THREADS"
	jobs := []execution.Job{sh(1, b.dir, show), sh(2, b.dir, show), sh(3, b.dir, show)}
	jobs[1].Tasks[0].Env = []string{"OMP_NUM_THREADS=8"}
	jobs[2].Tasks[0].Env = []string{"MKL_NUM_THREADS=5", "GOMAXPROCS=6"}
	for i := range jobs {
		jobs[i].CPUs = 3
	}
	b.d.Submit(jobs)
	b.sink.awaitResults(t, 3)
	for i, want := range []string{"2 2 1 3 3\n", "8 1 3 3\n", "2 5 1 6 3\n"} {
		if got := read(t, b.dir, executor.TasksDir, jobs[i].Tasks[0].ID+".1", "stdout"); got != want {
			t.Errorf("job %d sees %q, want %q", i+1, got, want)
		}
	}
}
