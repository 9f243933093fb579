package progress

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// A Condition specifies what to wait for, and for how long.
type Condition struct {
	Until   string        // as for api.Client.WaitGlidein
	Timeout time.Duration // 0: no limit
}

// glance is the maximum duration of one request to corrald; it is short, so that the view is up to date.
const glance = time.Second

// Glidein shows a glidein on view until it meets the condition, and returns it. Its results and errors are those of
// api.Client.WaitGlidein.
func Glidein(
	ctx context.Context, cl *api.Client, id corral.GlideinID, wait Condition, view *GlideinView,
) (corral.Glidein, error) {
	defer view.Close()
	until, err := api.ParseUntilGlidein(wait.Until)
	if err != nil {
		return corral.Glidein{}, err
	}
	began := time.Now()
	for {
		left := glance
		if wait.Timeout > 0 {
			left = min(left, max(wait.Timeout-time.Since(began), time.Millisecond))
		}
		g, err := cl.WaitGlidein(ctx, id, wait.Until, left)
		if corral.KindOf(err) != corral.Timeout {
			return g, err
		}
		ctx = retry.Patiently(ctx) // retries patiently from the first answer on
		view.Show(g, time.Now())
		if wait.Timeout > 0 && time.Since(began) >= wait.Timeout {
			return g, until.Late(until.Glidein(g), wait.Timeout)
		}
	}
}

// A GlideinView shows the progress of a glidein: on a terminal, with a line that changes in place and is removed at the
// end; otherwise with a line for each change.
type GlideinView struct {
	w      io.Writer
	look   Look
	region *Region
	last   string
}

// NewGlideinView returns a view that writes to w.
func NewGlideinView(w io.Writer, look Look) *GlideinView {
	return &GlideinView{w: w, look: look, region: NewRegion(w)}
}

// Show shows the state of g at now.
func (v *GlideinView) Show(g corral.Glidein, now time.Time) {
	state, reason := Shown(g, now)
	if reason != "" {
		reason = " (" + reason + ")"
	}
	name, rest := fmt.Sprintf("glidein %d ", g.ID), fmt.Sprintf("%s: %d of %d workers", reason, g.WorkersNow, g.Hosts)
	if v.look.Live() {
		since := max(now.Sub(g.CreatedAt), 0).Truncate(time.Second)
		v.region.Draw(v.look.Line(Span{Bold, name}, Span{Note, state}, Span{Plain, rest + fmt.Sprintf("  %s", since)}))
		return
	}
	if text := v.look.Line(Span{Plain, name + state + rest}); text != v.last {
		v.last = text
		fmt.Fprintln(v.w, text)
	}
}

// Close ends the view.
func (v *GlideinView) Close() { v.region.Clear() }
