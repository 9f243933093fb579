package attempt

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/resubmit"
)

// startUp is how long a pilot may take from its start until its workers may take tasks.
const startUp = time.Second

// Longest is the longest estimate of a task that a worker takes which is new and has to leave in endsIn.
func Longest(endsIn time.Duration) time.Duration {
	return matching.CutAfter(endsIn) - execution.StartMargin
}

// ToCome returns the longest estimate that a worker of g may take which is still to come, of an attempt
// that is alive or of one that may follow; not ok if none is. present says how many cpus of each attempt
// are registered.
func ToCome(g corral.Glidein, present map[corral.JobID]int, now time.Time) (left time.Duration, ok bool) {
	if g.State.Terminal() || g.Asked != corral.AskNothing {
		return 0, false
	}
	walltime := time.Duration(g.Walltime)
	var stays time.Duration // of the worker that stays longest
	for _, a := range g.Live() {
		switch {
		case a.Asked != corral.AskNothing || present[a.ID] >= g.CPUsOf(a):
		case a.State == corral.JobRunning:
			stays = max(stays, walltime-now.Sub(a.StartedAt))
		default:
			stays = walltime
		}
	}
	if verdict, _, _ := g.NextIfExpired(now); verdict == resubmit.Again {
		stays = walltime
	}
	left = Longest(stays-jobfiles.Reserve(walltime)) - startUp
	return left, left > 0
}
