package attempt

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/resubmit"
)

// startUp is the maximum time from a pilot's start until its workers can accept tasks.
const startUp = time.Second

// Longest returns the longest task that a new worker accepts if it has to leave after endsIn.
func Longest(endsIn time.Duration) time.Duration {
	return matching.CutAfter(endsIn) - execution.StartMargin
}

// ToCome returns the longest task that a future worker of g may accept, in time at its speed, whether the worker
// belongs to a live attempt or to an attempt that may follow; ok is false if no worker is expected. present is the
// number of registered cpus of each attempt.
func ToCome(g *corral.Glidein, present map[corral.JobID]int, now time.Time) (left time.Duration, ok bool) {
	if g.State.Terminal() || g.Asked != corral.AskNothing {
		return 0, false
	}
	walltime := time.Duration(g.Walltime)
	var stays time.Duration // remaining time of the worker that stays longest
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
