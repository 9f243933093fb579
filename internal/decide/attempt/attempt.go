// Package attempt makes the decisions of a pilot: how long it stays on its nodes, when and why it leaves them, when a
// worker is started, restarted or abandoned, and which host counts as lost.
//
// It has two main types. A Stay covers the pilot's time and its departure. A Roster covers its workers, one for each
// host requested for the pilot, wherever their processes run. The supervisor (internal/node/pilot) reports its
// observations to both and carries out their decisions; it starts the processes and talks to corrald, and decides
// nothing itself. This package contains neither a process nor a clock: now is an argument, measured on the monotonic
// clock since the supervisor's start, so that setting a node's clock neither ends a pilot early nor lets it overrun
// its walltime.
//
//	staying ──Drain──► draining ──Leave──► leaving ──KillAt──► workers are killed
//	   └─────────────Leave or Fail────────────┘
package attempt

import "time"

// A Left is the reason why a worker left of its own accord; the first four match embedded/worker's Reasons.
type Left string

const (
	LeftDrained    Left = "drained"    // after a request to finish the running tasks
	LeftExpired    Left = "expired"    // its time was over
	LeftAsked      Left = "asked"      // after a request to leave at once, or because its supervisor is gone
	LeftRefused    Left = "refused"    // its cluster refuses it, and would refuse it from any other node
	LeftTerminated Left = "terminated" // the site ended it: a batch system may signal every process of a job
	LeftUnable     Left = "unable"     // no worker can serve on its node
)

const (
	// Grace is the time between telling workers to leave at once and killing them.
	Grace = 2 * time.Second
	// SweepTime is how long killed processes have to disappear. Processes that hang in the kernel for longer are
	// ignored.
	SweepTime = 5 * time.Second

	routeWait  = 5 * time.Minute // for corrald's first answer, at most half of the walltime
	awayAfter  = 3 * time.Second // an idle worker that is silent for this long has lost its dispatcher
	restartGap = time.Second     // between two starts of the same worker
	maxDeaths  = 3               // restarts in a row of a worker that never registered in between
)
