// Package attempt makes the decisions of a pilot: how long the pilot stays on its nodes, when and why it leaves them,
// when a worker is started, restarted or abandoned, and which host counts as lost.
//
// It has two main types. A Stay covers the pilot's time and its departure. A Roster covers the pilot's workers, one for
// each requested host, wherever their processes run. The supervisor (internal/node/pilot) reports its observations to
// both and carries out their decisions; it starts the processes and communicates with corrald, but makes no decisions
// itself. This package neither starts processes nor reads a clock: now is an argument, measured on the monotonic clock
// since the supervisor's start, so that setting a node's clock neither ends a pilot early nor lets it overrun its
// walltime.
//
//	staying ──Drain──► draining ──Leave──► leaving ──KillAt──► workers are killed
//	   └─────────────Leave or Fail────────────┘
package attempt

import "time"

// A Left is the reason why a worker left of its own accord; the first four match internal/embedded/worker's Reasons.
type Left string

const (
	LeftDrained    Left = "drained"    // after a request to finish the running tasks
	LeftExpired    Left = "expired"    // its time had run out
	LeftAsked      Left = "asked"      // after a request to leave at once, or because its supervisor had ended
	LeftRefused    Left = "refused"    // its cluster does not accept it, and would not do so from another node either
	LeftTerminated Left = "terminated" // the site ended the worker: a batch system may signal every process of a job
	LeftUnable     Left = "unable"     // no worker can serve on its node
)

const (
	// Grace is the time between ordering workers to leave at once and killing them.
	Grace = 2 * time.Second
	// SweepTime is how long the supervisor waits for killed processes to disappear. Processes that hang in the kernel
	// for longer are ignored.
	SweepTime = 5 * time.Second

	routeWait  = 5 * time.Minute // maximum wait for corrald's first answer, but at most half of the walltime
	awayAfter  = 3 * time.Second // an idle worker that is silent for this long has lost its dispatcher
	restartGap = time.Second     // minimum time between two starts of the same worker
	maxDeaths  = 3               // maximum number of consecutive restarts of a worker that does not register in between
)
