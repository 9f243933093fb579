package follow

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// Shown is the state of a glidein and its reason, as people may read them at now. A reason that names a time is stored
// until the glidein is looked at again, which may be later than that: from that time on it waits for nothing but the
// look. Workers come by themselves, while the batch system is asked now and then: with workers its job runs.
func Shown(g corral.Glidein, now time.Time) (state, reason string) {
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
