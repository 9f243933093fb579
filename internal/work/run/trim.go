package run

// The note of a task, which is what a batch job runs, is a file of the run's data for as long as somebody may need it.
// A run may have a hundred thousand tasks, and their notes together are as large as what they do may be small; so the
// note goes once the tasks that have it are done and have been for a while. Until then they may be run again. Those
// that failed keep theirs, for a retry or for the run to be resumed.
//
// Nothing is recorded of that: a note that is there may be needed, and one that is not is not. What was left because
// corrald was killed is found again, since all that are there are looked at.

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

const (
	// noteAge is for how long the note of a task stays that is done.
	noteAge = 5 * time.Minute
	// sweepEvery is the time between two looks at the notes.
	sweepEvery = time.Minute
)

// dropSpent removes the notes that nobody needs any more at now, if it did not look just before.
func (s *state) dropSpent(now time.Time) {
	if g := s.plan.grown; g != nil && now.Sub(g.swept) >= sweepEvery {
		g.swept = now
		s.dropDone(now.Add(-noteAge))
	}
}

// dropDone removes the notes of which all tasks were done by an instant. One that cannot be removed is looked at
// again; what else is in their folder stays.
func (s *state) dropDone(before time.Time) {
	if s.plan.grown == nil {
		return
	}
	dir := filepath.Join(s.plan.dir, executor.DataDir, notesDir)
	entries, _ := os.ReadDir(dir) // without it there are none
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

// doneBefore reports whether all tasks of a group were done by an instant.
func (s *state) doneBefore(g *group, before time.Time) bool {
	for i := g.first; i < g.first+g.count; i++ {
		state, since, over := execution.Over(s.x, i)
		if !over || state != corral.TaskDone || since.After(before) {
			return false
		}
	}
	return true
}

// unnoted refuses to try tasks again whose note is gone.
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
			const why = "task %s was done more than %s ago: what it ran is not kept; add it again"
			return corral.ErrorAt(corral.Conflict, "tasks", why, execution.TaskID(int(i)), noteAge)
		}
	}
	return nil
}
