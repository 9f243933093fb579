// Package attempt has the decisions of a pilot: how long it may stay on its nodes, when and why it leaves them, when a
// worker is started, started again or given up, and which host counts as lost.
//
// It decides about two things. A Stay is the pilot's time and its departure. A Roster is its workers, one for each host
// that the pilot was asked for, wherever their processes run. The supervisor (internal/node/pilot) tells both what it
// sees and does what they say; it starts the processes and talks to corrald, and decides nothing itself. Here is
// neither a process nor a clock: now is an argument, and it counts on the monotonic clock from the supervisor's start,
// so that a node whose clock is set neither ends a pilot early nor lets it overrun its walltime.
//
//	staying ──Drain──► draining ──Leave──► leaving ──KillAt──► workers are killed
//	   └─────────────Leave or Fail────────────┘
package attempt

import "time"

// A Left says why a worker left of its own accord; embedded/worker's Reasons are the first four.
type Left string

const (
	LeftDrained    Left = "drained"    // it was asked to finish what ran
	LeftExpired    Left = "expired"    // its time was over
	LeftAsked      Left = "asked"      // it was asked to leave at once, or its supervisor is gone
	LeftRefused    Left = "refused"    // its cluster does not want it, nor would it from another node
	LeftTerminated Left = "terminated" // the site told it to go: a batch system may signal every process of a job
	LeftUnable     Left = "unable"     // no worker can serve on its node
)

const (
	// Grace is from telling workers to leave now to killing them.
	Grace = 2 * time.Second
	// SweepTime is for killed processes to be gone. What hangs in the kernel for longer is not waited for.
	SweepTime = 5 * time.Second

	routeWait  = 5 * time.Minute // for corrald to answer at first, at most half of the walltime
	awayAfter  = 3 * time.Second // an idle worker that says nothing for so long has lost its dispatcher
	restartGap = time.Second     // between two starts of the same worker
	maxDeaths  = 3               // restarts in a row of a worker that did not register in between
)
