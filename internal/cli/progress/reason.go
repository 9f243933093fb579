package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// Shown returns the displayed state of a glidein and its reason at now. corrald updates a stored reason that names a
// time only when it checks the glidein again; after that time the glidein waits only for this check. Workers report by
// themselves, while the batch system is polled, so a glidein with workers is shown as running.
func Shown(g corral.Glidein, now time.Time) (state, reason string) {
	if g.State == corral.GlideinActive && g.Unreachable != nil {
		return string(corral.JobRunning), join(outOfReach(*g.Unreachable, now), g.Losses())
	}
	if g.State == corral.GlideinActive && g.WorkersNow > 0 {
		return string(corral.JobRunning), g.Losses()
	}
	state, reason = g.Shown()
	for _, until := range []string{"back-off until ", "not before "} {
		text, ok := strings.CutPrefix(reason, until)
		if at, err := time.Parse(time.RFC3339, text); ok && err == nil && !now.Before(at) {
			return state, "to be submitted"
		}
	}
	return state, reason
}

// Reason returns why a run makes no progress, as displayed at now, or "" if it makes progress.
func Reason(r corral.Run, now time.Time) string {
	if r.Unreachable == nil || r.State != corral.RunRunning {
		return r.Reason
	}
	return join(outOfReach(*r.Unreachable, now), r.Reason)
}

// outOfReach describes which workers are out of reach, and since when, in local time.
func outOfReach(o corral.Outage, now time.Time) string {
	layout := "15:04:05"
	if now.Sub(o.Since) >= 24*time.Hour {
		layout = "2006-01-02 15:04"
	}
	return fmt.Sprintf("%d of %d workers are out of reach since %s", o.Workers, o.Of, o.Since.Local().Format(layout))
}

// join joins two reasons, either of which may be empty.
func join(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}
