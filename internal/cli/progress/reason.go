package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// Shown is the state of a glidein and its reason, as people may read them at now. A reason that names a time is stored
// until the glidein is looked at again, which may be later than that: from that time on it waits for nothing but the
// look. Workers come by themselves, while the batch system is asked now and then: with workers its job runs.
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

// Reason is why a run gets no further, as people may read it at now; empty if it does.
func Reason(r corral.Run, now time.Time) string {
	if r.Unreachable == nil || r.State != corral.RunRunning {
		return r.Reason
	}
	return join(outOfReach(*r.Unreachable, now), r.Reason)
}

// outOfReach says which workers are out of reach, and since when by the reader's clock.
func outOfReach(o corral.Outage, now time.Time) string {
	layout := "15:04:05"
	if now.Sub(o.Since) >= 24*time.Hour {
		layout = "2006-01-02 15:04"
	}
	return fmt.Sprintf("%d of %d workers are out of reach since %s", o.Workers, o.Of, o.Since.Local().Format(layout))
}

// join puts two reasons, of which either may be empty, one behind the other.
func join(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}
