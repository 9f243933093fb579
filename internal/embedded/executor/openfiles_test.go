package executor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// The directory of a run's tasks stays open between tasks until rest closes it; only one directory is open at a time.
func TestOpened(t *testing.T) {
	t.Parallel()
	o := opened{fd: unix.AT_FDCWD}
	a, b := t.TempDir(), t.TempDir()
	if fd := o.take(filepath.Join(a, "none")); fd != unix.AT_FDCWD {
		t.Errorf("a directory that is not there: %d", fd)
	}
	first, second, other := o.take(a), o.take(a), o.take(b)
	if first < 0 || second != first || other != unix.AT_FDCWD {
		t.Errorf("descriptors %d, %d of one, %d of another beside it", first, second, other)
	}
	o.give(other)
	o.give(second)
	o.rest()
	if o.fd != first {
		t.Error("a directory that is in use was closed")
	}
	o.give(first)
	if fd := o.take(b); fd < 0 || o.path != b {
		t.Errorf("after it another one: %d of %s", fd, o.path)
	} else {
		o.give(fd)
	}
	o.rest()
	if o.fd != unix.AT_FDCWD {
		t.Error("an unused directory stays open")
	}
}

// Tasks run below their run's path even if the directory was replaced since the previous task.
func TestTasksAfterTheirDirectoryWasReplaced(t *testing.T) {
	t.Parallel()
	x, err := New("tag/0", "host", "")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	run := t.TempDir()
	if err := os.Mkdir(filepath.Join(run, DataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for attempt := range 4 {
		task := execution.Task{ID: "t", Attempt: attempt, Argv: []string{"echo", "there"}, Estimate: time.Second}
		job := execution.Job{Run: 1, Seq: int64(attempt), Dir: run, CPUs: 1, Tasks: []execution.Task{task}}
		r := x.Begin(&job, &job.Tasks[0]).Run(func() bool { return true })
		said, err := os.ReadFile(filepath.Join(run, TasksDir, "t."+string(rune('0'+attempt)), "stdout"))
		if r.Status != execution.Done || string(said) != "there\n" {
			t.Errorf("attempt %d: %s: %s: %q, %v", attempt, r.Status, r.Reason, said, err)
		}
		if attempt == 1 {
			if err := os.RemoveAll(filepath.Join(run, TasksDir)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
