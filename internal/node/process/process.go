// Package process starts a pilot's worker processes, talks with them, and leaves nothing of them behind.
//
// A tree of processes serves an attempt. The supervisor, on the batch job's first node, starts a worker for each host
// that it was asked for. A worker of its own node is a child process. On another node a host stands between the two:
// srun or ssh, which is the supervisor's child, starts it there, and the worker is the host's child. So supervisor and
// host both have a Group of children, and to the supervisor all children look the same:
//
//	supervisor ──socket pair──► worker ──► tasks, or HTCondor's daemons
//	     └──────socket pair──► srun or ssh ──stdin, stdout──► host ──socket pair──► worker ──► …
//
// Downward go asks, upward go words, one JSON value a line. The order, with the secret of the pilot's session, is the
// first ask: the secret is in no argument, environment variable or file, and each process hides its memory before it
// has the secret (Hide). The end of the stream tells each side that the other is gone.
//
// The invariant: when a Group has ended, no process that descends from this one is left. For that the process makes
// itself the reaper of orphans (AdoptOrphans): whatever a killed worker leaves behind then stays its descendant, which
// it finds in /proc and kills. Nothing else in the process may wait for a child.
package process

import (
	"os"
	"syscall"
)

// Notices are the signals with which batch systems say, some time before they take the nodes back, that they will. They
// may come to every process of a job. The supervisor acts on them; the others only outlive them.
var Notices = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU}
