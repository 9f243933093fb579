package personal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Purge deletes the directories of runs with --dir, including everything that the runs created there; directories
// below data are deleted with it. It returns the directories in which other files were kept, and those that could not
// be deleted. If a run's record was removed earlier, its directory belongs to the user.
func Purge(ctx context.Context, cl *api.Client, data string) (kept, left []string, err error) {
	runs, err := cl.Runs(ctx, api.Filter{})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range runs {
		if below, err := filepath.Rel(data, r.Dir); err == nil && filepath.IsLocal(below) {
			continue
		}
		gone, err := cl.RemoveRun(ctx, r.ID, true)
		switch {
		case ctx.Err() != nil:
			return kept, left, ctx.Err()
		case corral.KindOf(err) == corral.NotFound: // it was removed meanwhile
		case err != nil:
			left = append(left, fmt.Sprintf("run %d keeps %s: %v", r.ID, r.Dir, err))
		default:
			if _, err := os.Lstat(r.Dir); err == nil {
				kept = append(kept, fmt.Sprintf("run %d: %s", r.ID, gone.Reason))
			}
		}
	}
	return kept, left, nil
}
