package run

// The note of a task, which contains the script of a batch job, is a file in the run's data as long as it may be
// needed. A run may have a hundred thousand small tasks, whose notes together are large. So a note is removed once all
// its tasks have been done for a while. Until then they may be run again. Tasks that failed keep their notes, for a
// retry or a resumption of the run.
//
// The removal is not recorded: a note that exists may be needed, and a missing one is not. Notes that remain because
// corrald was killed are found later, since each search examines all notes.

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

const (
	// noteAge is the time for which the note of a task is kept after the task is done.
	noteAge = 5 * time.Minute
	// sweepEvery is the time between two searches for spent notes.
	sweepEvery = time.Minute
)

// dropSpent removes the notes that are no longer needed at now, unless it did so shortly before.
func (s *state) dropSpent(now time.Time) {
	if g := s.plan.grown; g != nil && now.Sub(g.swept) >= sweepEvery {
		g.swept = now
		s.dropDone(now.Add(-noteAge))
	}
}

// dropDone removes the notes whose tasks were all done by the given time. If the removal fails, it is tried again
// later; other files in the folder remain.
func (s *state) dropDone(before time.Time) {
	if s.plan.grown == nil {
		return
	}
	dir := filepath.Join(s.plan.dir, executor.DataDir, notesDir)
	entries, _ := os.ReadDir(dir) // without the folder, there are none
	for _, e := range entries {
		i, ok := s.plan.number(e.Name())
		if !ok {
			continue
		}
		if g := s.plan.grown.of(i); g.Note && g.first == i && s.doneBefore(g, before) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// doneBefore reports whether all tasks of a group were done by the given time.
func (s *state) doneBefore(g *group, before time.Time) bool {
	for i := g.first; i < g.first+g.count; i++ {
		state, since, over := execution.Over(s.x, i)
		if !over || state != corral.TaskDone || since.After(before) {
			return false
		}
	}
	return true
}

// unnoted refuses to retry tasks whose note has been removed.
func (s *state) unnoted(tasks []int32) error {
	if s.plan.grown == nil {
		return nil
	}
	var last *group // the tasks ascend, and those of an array share a note
	for _, i := range tasks {
		g := s.plan.grown.of(int(i))
		if !g.Note || g == last {
			continue
		}
		last = g
		_, err := os.Lstat(filepath.Join(s.plan.dir, executor.DataDir, noteOf(g.first)))
		if errors.Is(err, fs.ErrNotExist) {
			const why = "task %s was done more than %s ago: its note has been removed; add it again"
			return corral.ErrorAt(corral.Conflict, "tasks", why, execution.TaskID(int(i)), noteAge)
		}
	}
	return nil
}
