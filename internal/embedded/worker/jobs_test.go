package worker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// A job without remaining tasks vacates its place once, for the next job, and is counted until its files have been
// returned.
func TestVacatedPlaces(t *testing.T) {
	w, first := newWorker(t)
	j := &w.jobs
	j.room = matching.Room{Host: w.cfg.Resources, CutAt: time.Now().Add(time.Hour)}
	j.room.Take(first.needs())
	next := &work{w: w, job: longJob(2)}
	last := &work{w: w, job: longJob(3)}
	j.add(next)
	j.add(last)
	verdict := func() matching.Verdict {
		_, v := j.next(time.Now())
		return v
	}
	if v := verdict(); v != matching.Keep {
		t.Fatalf("the next job beside one that runs: %v", v)
	}
	if !j.vacate(first, 1) || verdict() != matching.Start {
		t.Fatal("the next job does not start where a place was vacated")
	}
	j.start()
	if j.vacate(next, 1) {
		t.Error("two jobs bring back files at a worker of one cpu")
	}
	j.over(first)
	if v := verdict(); v != matching.Keep {
		t.Errorf("a vacated place was given up twice: %v", v)
	}
	if !j.vacate(next, 1) || verdict() != matching.Start {
		t.Error("a place is not vacated after another job's files are back")
	}
	if len(j.held()) != 2 {
		t.Errorf("the worker reports %d jobs, want the one whose files are on their way and the one that waits", len(j.held()))
	}
	j.over(next)
	j.start()
	last.job.DiskMiB = 1
	if j.vacate(last, 1) {
		t.Error("a place was vacated by a job that has disk")
	}
}

// A directory that was not seen counts as missed until it is seen.
func TestDirectoryIsMissedUntilSeen(t *testing.T) {
	var s sight
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, executor.DataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	gone := execution.Job{Dir: dir, Mark: "another"}
	if s.missed(&gone) || s.sees(&gone) || !s.missed(&gone) {
		t.Error("a run's directory of another mark is seen")
	}
	here := execution.Job{Dir: dir}
	if !s.sees(&here) || s.missed(&here) {
		t.Error("a run's directory that is there is missed")
	}
}
