package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// Disk measures the directory of a run. It examines every file there.
func Disk(ctx context.Context, row corral.Run) (api.DiskUse, error) {
	use, err := atomicfile.UseOf(ctx, row.Dir)
	return api.DiskUse{Files: use.Files, Bytes: use.Bytes}, err
}
