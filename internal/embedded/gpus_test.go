package embedded_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// Three tasks of one GPU each run on a worker with two GPUs: two concurrent tasks see different GPUs, and no task sees
// both. Each task waits for another task, so that two tasks really run concurrently.
func TestConcurrentTasksSeeDifferentGPUs(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{}, func(c *worker.Config) {
		c.CPUs, c.GPUs, c.Devices, c.DiskMiB = 4, 2, []string{"3", "GPU-7"}, 100
	})
	b.awaitWorkers(t, 1)
	if w := b.d.Workers()[0]; w.GPUs != 2 || w.DiskMiB != 100 {
		t.Errorf("the worker says %+v", w.Resources())
	}
	see := []string{"sh", "-c", `echo "${CUDA_VISIBLE_DEVICES-unset}" > "$0"; mkfifo ../../$1 2>/dev/null
		test "$2" = write && echo > ../../$1 || read line < ../../$1`}
	job := func(seq int64, gpus int, argv ...string) execution.Job {
		id := "t" + string(rune('0'+seq))
		return execution.Job{
			Run: 1, Seq: seq, Dir: b.dir, CPUs: 1, GPUs: gpus, DiskMiB: 30,
			Tasks: []execution.Task{{Index: int(seq), ID: id, Attempt: 1, Argv: slices.Concat(see, argv), Outputs: []string{id}}},
		}
	}
	b.d.Submit([]execution.Job{job(1, 1, "t1", "pair", "write"), job(2, 1, "t2", "pair", "read")})
	b.sink.awaitResults(t, 2)
	b.d.Submit([]execution.Job{job(3, 2, "t3", "other", "write"), job(4, 0, "t4", "other", "read")})
	for seq, r := range b.sink.awaitResults(t, 4) {
		if r.Status != execution.Done {
			t.Errorf("task %d: %+v", seq, r)
		}
	}
	seen := func(name string) string { return read(t, filepath.Join(b.dir, "data", name)) }
	pair := []string{seen("t1"), seen("t2")}
	slices.Sort(pair)
	if !slices.Equal(pair, []string{"3\n", "GPU-7\n"}) {
		t.Errorf("side by side they saw %q", pair)
	}
	if three := seen("t3"); three != "3,GPU-7\n" && three != "GPU-7,3\n" {
		t.Errorf("a task of two saw %q", three)
	}
	if four := seen("t4"); four != "\n" {
		t.Errorf("a task of none saw %q", four)
	}
}
