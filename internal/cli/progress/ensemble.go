package progress

import (
	"context"
	"time"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// ensemblePace is the interval between requests for the state of an ensemble.
const ensemblePace = 500 * time.Millisecond

// Ensemble shows e until it has ended and returns its final state. If ctx ends first, Ensemble returns the last known
// state and ctx's error; the ensemble itself continues. If corrald restarts, Ensemble waits for it.
func Ensemble(ctx context.Context, cl *api.Client, e record.Ensemble, show func(record.Ensemble)) (record.Ensemble,
	error) {
	ticker := time.NewTicker(ensemblePace)
	defer ticker.Stop()
	for {
		show(e)
		if e.State == record.Ended || e.State == record.Deleted {
			return e, nil
		}
		select {
		case <-ctx.Done():
			return e, ctx.Err()
		case <-ticker.C:
		}
		next, err := cl.Ensemble(retry.Patiently(ctx), e.ID)
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
		if err != nil {
			return e, err
		}
		e = next
	}
}
