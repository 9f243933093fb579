package progress

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A bar shows the share of completed tasks, and is updated in place.
type bar struct {
	look   Look
	region *Region
}

func (b *bar) Show(_ context.Context, r corral.Run, now time.Time) {
	b.region.Draw(Progress(b.look, fmt.Sprintf("run %d ", r.ID), r, now)...)
}

func (b *bar) Close() { b.region.Keep() }

// mostBar is the maximum length of a bar in characters; leastBar is the minimum length at which a bar is still useful.
const (
	mostBar  = 40
	leastBar = 10
)

// Progress draws the progress of a run at now, labelled with head: a line with a bar and, if the run makes no progress,
// a line with the reason.
func Progress(look Look, head string, r corral.Run, now time.Time) []string {
	tail := fmt.Sprintf(" %d/%d", r.Tasks.Done, r.Tasks.Total)
	colour := Good
	switch {
	case r.State == corral.RunRunning:
		tail += fmt.Sprintf("  %d running, %d ready", r.Tasks.Running, r.Tasks.Ready)
	case r.State == corral.RunSucceeded, r.State == corral.RunCancelling:
		head += string(r.State) + " "
	default:
		head, colour = head+string(r.State)+" ", Bad
	}
	if r.Tasks.Failed > 0 {
		tail += fmt.Sprintf(", %d failed", r.Tasks.Failed)
	}
	tail += "  " + Elapsed(r, now) + Left(r, now)
	length := min(look.Columns()-len(head)-len(tail), mostBar)
	done, todo := "", ""
	if length >= leastBar {
		filled := length * r.Tasks.Done / max(r.Tasks.Total, 1)
		done, todo = strings.Repeat("━", filled), strings.Repeat("─", length-filled)
	}
	all := []string{look.Line(Span{Bold, head}, Span{colour, done}, Span{Faint, todo}, Span{Plain, tail})}
	if why := Reason(r, now); why != "" && !r.State.Over() { // the command itself prints why a run ended
		all = append(all, look.Line(Span{Note, "  " + why}))
	}
	return all
}

// Left returns the expected time until the run's end, such as ", 5m left", or "" if it is unknown.
func Left(r corral.Run, now time.Time) string {
	if r.ExpectedEnd.IsZero() || r.State.Over() {
		return ""
	}
	left := max(r.ExpectedEnd.Sub(now), 0)
	if left >= time.Hour {
		return ", " + strings.TrimSuffix(left.Round(time.Minute).String(), "0s") + " left"
	}
	return ", " + left.Round(time.Second).String() + " left"
}

// Elapsed returns the duration of a run until now, or until its end.
func Elapsed(r corral.Run, now time.Time) string {
	if r.State.Over() && !r.EndedAt.IsZero() {
		return max(r.EndedAt.Sub(r.CreatedAt), 0).Round(100 * time.Millisecond).String()
	}
	return max(now.Sub(r.CreatedAt), 0).Truncate(time.Second).String()
}
