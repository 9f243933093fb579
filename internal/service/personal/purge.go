package personal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Purge deletes the directories of runs that chose them (--dir), with all that the runs made there; those that got one
// below data go with it. It says of which something else is kept, and of which something could not be deleted. A run
// whose record was removed before has left its directory to its user.
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
		case corral.KindOf(err) == corral.NotFound: // somebody else was faster
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
