// Package process starts a pilot's worker processes, communicates with them, and ends all their processes.
//
// A tree of processes serves an attempt. The supervisor, on the batch job's first node, starts a worker for each
// requested host. A worker on the supervisor's own node is its child process. On another node, the worker is the child
// of a host, which is started there by srun or ssh, a child of the supervisor. So the supervisor and each host have a
// Group of children, and the supervisor treats all its children alike:
//
//	supervisor ──socket pair──► worker ──► tasks, or HTCondor's daemons
//	     └──────socket pair──► srun or ssh ──stdin, stdout──► host ──socket pair──► worker ──► …
//
// Asks are sent down and words are sent up, one JSON value a line. The order, with the secret of the pilot's session,
// is the first ask: the secret is not in any argument, environment variable or file, and each process hides its memory
// before it receives the secret (Hide). The end of the stream shows each side that the other has ended.
//
// The invariant: when a Group has ended, no descendant of this process is left. To ensure this, the process becomes the
// reaper of orphans (AdoptOrphans): the processes that a killed worker leaves remain descendants, and the process finds
// them in /proc and kills them. No other code in the process may wait for a child.
package process

import (
	"os"
	"syscall"
)

// Notices are the signals by which batch systems announce, some time in advance, that they will reclaim the nodes. They
// may be sent to every process of a job. The supervisor acts on them; the other processes only ignore them.
var Notices = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU}
