package run

import (
	"context"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/work/reuse"
)

// keepUnchanged compares the run with the latest run of the same workflow file among rows, and marks tasks that need
// not run again as done. Without an earlier run, all tasks run.
func (c *candidate) keepUnchanged(ctx context.Context, r api.NewRun, rows []corral.Run) error {
	row, was, err := reuse.Latest(rows, reuse.OriginOf(r, nil))
	if err != nil {
		return err
	}
	p := reuse.Past{}
	if row.ID != 0 {
		s, err := readState(ctx, row)
		if err != nil {
			return err
		}
		c.before = was
		c.doneDir = layout{row.Dir}.path(executor.DataDir)
		p = reuse.Past{
			Flow: s.plan.flow, Done: func(i int) bool { return s.x.Task(i).State == corral.TaskDone },
			Same: func(file string) bool {
				now, ok := reuse.StampOf(filepath.Join(r.SourceDir, file))
				then, known := was.Inputs[file]
				return ok && known && now == then
			},
			Made: func(file string) bool { return exists(filepath.Join(c.doneDir, file)) },
		}
	}
	c.why = reuse.Outdated(c.plan.flow, p)
	for _, i := range reuse.Mark(c.plan.flow, c.why) {
		c.plan.spec.Tasks[i].Done = true
	}
	c.text = nil // it does not mark the tasks that are done
	return nil
}

// exists reports whether a file of this name exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
