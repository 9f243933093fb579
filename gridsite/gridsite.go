// Package gridsite defines the contract between Corral and a site: how to reach the site, and how to use its batch
// system.
//
//	Conn   a transport: runs commands and writes files at the site     gridsite/local, gridsite/ssh
//	Batch  a dialect: submits and follows jobs                         gridsite/fork, gridsite/slurm
//	Head   describes the site's machine, and stages files for jobs     gridsite/headnode
//
// Above this package a site is an Access: a Head and its batch systems. The implementations here consist of a Conn and
// a directory, so that each transport works with each dialect; a batch service with another interface needs no Conn.
// Every job has a unique tag assigned by Corral, in addition to the site's own id. Backends combines the parts, which
// the program chooses. The tests of gridsitetest apply to every combination.
//
// The invariant: a refusal and an unknown outcome are different results. After an unknown outcome the caller looks up
// the job by its tag, without guessing or simply repeating the request.
//
// Other packages decide how often to poll, when to retry and what an end means.
package gridsite

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/corral-pilot/corral"
)

// A Command is an argument vector to run at a site, never a shell command line.
type Command struct {
	Argv  []string
	Stdin io.Reader // nil: empty
}

// A Result is the outcome of a command that ran to its end.
type Result struct {
	Exit           int // exit status; 128+n if signal n ended it
	Stdout, Stderr []byte
}

// MaxOutput is the maximum number of bytes that a command may write to each of stdout and stderr. A transport kills a
// command that writes more, with ErrOutput, so that a site's output cannot exhaust the service.
const MaxOutput = 16 << 20

// ErrOutput is the error of a command that was killed because it wrote too much.
var ErrOutput = fmt.Errorf("more than %d bytes of output", MaxOutput)

// Linger is the time for which a transport waits for the output of an ended command to close. A background process may
// hold the output open indefinitely.
const Linger = 2 * time.Second

// A Conn is the transport to one site. A non-zero exit status is a Result, not an error: an error means that the
// outcome at the site is unknown. Its methods may be called concurrently.
type Conn interface {
	Run(ctx context.Context, cmd Command) (Result, error)

	// Put writes a file atomically (temporary name, then rename), with exactly this mode.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error

	Close() error
}

// A JobSpec describes a batch job to submit. The job receives its tag in CORRAL_JOB_TAG. With this variable, every
// process that keeps it can be found. A job with several hosts is started once, on its first node. CORRAL_NODES then
// lists all nodes, separated by blanks and beginning with the first node, and CORRAL_FANOUT names the command that
// starts a program on the other nodes: srun or ssh.
type JobSpec struct {
	Tag       string            // unique; letters, digits, '.', '_', '-'; the batch system reports it back
	Program   string            // a program below the site's root, with arguments Argv; empty: Argv is complete
	Argv      []string          // without a Program it begins with an absolute path; run in the job's own directory
	Files     map[string][]byte // private files (0600) written to that directory before the job starts
	Hosts     int
	CPUs      int           // per host
	MemoryMiB int           // per host; 0: the site's default
	Walltime  time.Duration // 0: the site's default
	GPUs      int           // per host

	corral.BatchOptions          // a batch system ignores options that it does not support
	Exclude             []string // nodes to avoid
}

// NodeFile is the file in a job's directory that may name the job's first node, in the form used by Exclude.
const NodeFile = "node"

// A Phase is the progress of a job according to the batch system.
type Phase string

const (
	Queued  Phase = "queued"
	Running Phase = "running"
	Ended   Phase = "ended"
)

// A JobStatus is a batch system's information about a job.
type JobStatus struct {
	Tag       string
	ID        string // the site's own id
	Phase     Phase
	Exit      *int   // once ended, if known
	Killed    Killed // once ended: the cause, if the job did not end by itself
	Says      string // the batch system's own word for that end, such as TIMEOUT; may be empty
	StartedAt time.Time
	EndedAt   time.Time

	// Waits is the reason why a queued job has not started, in the batch system's own words; empty: unknown. Never
	// means that the job cannot start under the present rules; Waits then names the rule.
	Waits string
	Never bool

	// Extra are the ids of further live jobs under the tag: a submission whose answer was lost may arrive after it was
	// repeated. The other fields describe the job that counts: the running job or, if none runs, the first job. A Batch
	// that can set Extra must be a Pruner.
	Extra []string
	Past  []string // ended jobs, as long as the batch system has data about them
}

// Killed is the reason why a job was ended, if it did not end by itself.
type Killed string

const (
	NotKilled     Killed = ""
	ByWalltime    Killed = "walltime"    // by the batch system, at the end of the walltime
	ByCancel      Killed = "cancel"      // at Corral's request
	ByDisappeared Killed = "disappeared" // its processes vanished without an exit status
	ByPreemption  Killed = "preempted"   // by the batch system, for another job
	ByNode        Killed = "node"        // one of its nodes failed
	ByMemory      Killed = "memory"      // by the batch system, because it exceeded its memory
	BySite        Killed = "site"        // by the batch system, for a limit or at someone else's request
)

// Batch submits and follows jobs at one site. Every method may be repeated. A *Refused, or an error of kind
// corral.Invalid or corral.Unavailable, means that nothing was done; after any other error the outcome is unknown, and
// the caller must check before repeating the call.
type Batch interface {
	// Submit queues a job and returns the site's id for it. A second submission under the same tag may return the first
	// id or create a second job, so the caller looks up the tag first.
	Submit(ctx context.Context, spec JobSpec) (id string, err error)

	// Poll returns the statuses of the jobs under tags in one round trip. The result omits tags that the site does not
	// know.
	Poll(ctx context.Context, tags []string) (map[string]JobStatus, error)

	// Cancel ends the job and all processes that it started: first politely, then after grace by force. It returns when
	// no process is left. Cancelling a job that has ended or never existed is not an error.
	Cancel(ctx context.Context, tag string, grace time.Duration) error

	// Read returns the content of a file in the job's directory at the site: stdout, stderr, or a file written by the
	// job. The error is fs.ErrNotExist if the file does not exist.
	Read(ctx context.Context, tag, name string) ([]byte, error)

	// Forget removes all data that the site keeps about an ended job.
	Forget(ctx context.Context, tag string) error
}

// Refused is a site's definite refusal: nothing was done. Its text is the site's own.
type Refused struct {
	Text      string
	Transient bool                // the same request may be accepted later
	Class     corral.FailureClass // the event required before that; only if Transient
}

// Error returns the site's own text.
func (e *Refused) Error() string { return e.Text }
