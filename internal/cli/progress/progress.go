// Package progress shows a run while it goes on: a bar that changes in place on a terminal, plain lines
// elsewhere; and draws, with the same means, what its workers did.
//
// A Look says what may be drawn; nothing here asks the terminal by itself. What is drawn on a terminal
// never fills its last column, so that no line wraps, and ends with a clean line.
package progress

import (
	"context"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// pace is how often corrald is asked for the run's counts.
const pace = 200 * time.Millisecond

// A View shows the states of a run, one after the other.
type View interface {
	// Show shows the run as it is at now.
	Show(ctx context.Context, r corral.Run, now time.Time)
	// Close ends the showing; what was shown last stays.
	Close()
}

// New returns a view that writes to w: a bar on a terminal, else plain lines.
func New(w io.Writer, look Look) View {
	if look.Live() {
		return &bar{look: look, region: NewRegion(w)}
	}
	return &lines{w: w}
}

// Run shows r on view until it is over and returns it as it is then. When ctx ends first it returns
// the last state seen and ctx's error; the run itself goes on. A restart of corrald is waited for.
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
