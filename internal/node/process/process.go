// Package process starts a pilot's worker processes, communicates with them, and ends all their processes.
//
// A tree of processes serves an attempt. The supervisor, on the batch job's first node, starts a worker for each
// requested host. A worker on its own node is a child process. For another node there is a host in between: srun or
// ssh, the supervisor's child, starts it there, and the worker is the host's child. So supervisor and host both have a
// Group of children, and the supervisor treats all children alike:
//
//	supervisor ──socket pair──► worker ──► tasks, or HTCondor's daemons
//	     └──────socket pair──► srun or ssh ──stdin, stdout──► host ──socket pair──► worker ──► …
//
// Asks are sent down and words are sent up, one JSON value a line. The order, with the secret of the pilot's session,
// is the first ask: the secret is not in any argument, environment variable or file, and each process hides its memory
// before it receives the secret (Hide). The end of the stream shows each side that the other has ended.
//
// The invariant: when a Group has ended, no descendant of this process is left. To ensure this, the process becomes the
// reaper of orphans (AdoptOrphans): the processes that a killed worker leaves remain descendants, which it finds in
// /proc and kills. No other code in the process may wait for a child.
package process

import (
	"os"
	"syscall"
)

// Notices are the signals by which batch systems announce, some time in advance, that they will take the nodes back.
// They may be sent to every process of a job. The supervisor acts on them; the other processes only ignore them.
var Notices = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU}
