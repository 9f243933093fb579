// Package progress shows a run while it is in progress: with a bar that changes in place on a terminal, or with plain
// lines elsewhere. It also draws the activity of a run's workers.
//
// A Look specifies what may be drawn; the package never examines the terminal itself. Drawings on a terminal do not
// fill its last column, so that no line wraps, and end with an empty line.
package progress

import (
	"context"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// pace is the interval between requests for the run's counts.
const pace = 200 * time.Millisecond

// A View shows the successive states of a run.
type View interface {
	// Show shows the state of the run at now.
	Show(ctx context.Context, r corral.Run, now time.Time)
	// Close ends the view; its last lines remain visible.
	Close()
}

// New returns a view that writes to w: a bar on a terminal, otherwise plain lines.
func New(w io.Writer, look Look) View {
	if look.Live() {
		return &bar{look: look, region: NewRegion(w)}
	}
	return &lines{w: w}
}

// Run shows r on view until it is over and returns its final state. If ctx ends first, Run returns the last known state
// and ctx's error; the run itself continues. If corrald restarts, Run waits for it.
func Run(ctx context.Context, cl *api.Client, r corral.Run, view View) (corral.Run, error) {
	defer view.Close()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		view.Show(ctx, r, time.Now())
		if r.State.Over() {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-ticker.C:
		}
		next, err := cl.Run(retry.Patiently(ctx), r.ID)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			return r, err
		}
		r = next
	}
}
