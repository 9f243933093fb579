// Package gridsite is the contract between Corral and a site: how the site is reached, and how its batch system is
// spoken to.
//
//	Conn   a transport: runs commands and writes files at the site     gridsite/local, gridsite/ssh
//	Batch  a dialect: submits and follows jobs                         gridsite/fork, gridsite/slurm
//	Head   answers for the site, and brings what jobs need there       gridsite/headnode
//
// Above this package a site is an Access: a Head and its batch systems. These here are made of a Conn and a directory,
// so each transport goes with each dialect; a batch service that is reached in another way needs no Conn. Every job
// carries a tag, which is ours and unique; the site has its own id for it. Backends joins the parts; the
// program that builds it chooses them. gridsitetest holds the tests that every combination passes.
//
// The one invariant: "it refused" and "we do not know" are different results. After an unknown result the job
// is looked up by its tag; nothing is guessed or simply repeated.
//
// How often to ask, when to retry and what an end means is decided elsewhere.
package gridsite

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/corral-pilot/corral"
)

// A Command is an argument vector to run at a site, never a line for a shell.
type Command struct {
	Argv  []string
	Stdin io.Reader // nil: empty
}

// A Result is what a command that ran to its end left.
type Result struct {
	Exit           int // exit status; 128+n if signal n ended it
	Stdout, Stderr []byte
}

// MaxOutput is how much a command may write to stdout, and to stderr, in bytes. A transport kills one that writes more,
// with ErrOutput: what a site sends must not exhaust the service.
const MaxOutput = 16 << 20

// ErrOutput is why a command that writes too much is killed.
var ErrOutput = fmt.Errorf("more than %d bytes of output", MaxOutput)

// Linger is how long a transport waits for a command's output to close once the command itself is over: a process that
// it left in the background may hold that open without end.
const Linger = 2 * time.Second

// A Conn reaches one site: the transport. A non-zero exit is a Result, not an error: an error means
// that we do not know what happened at the site. Its methods may be called from several goroutines at
// once.
type Conn interface {
	Run(ctx context.Context, cmd Command) (Result, error)

	// Put writes a file atomically (temporary name, then rename), with exactly this mode.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error

	Close() error
}

// A JobSpec describes a batch job to submit. The job finds its tag in CORRAL_JOB_TAG, and every
// process of a job that keeps this variable can be found by it. A job of several hosts is started once, on its first
// node. It then finds all its nodes in CORRAL_NODES, with blanks between and its own first, and in CORRAL_FANOUT what
// starts a program on the others: srun or ssh.
type JobSpec struct {
	Tag       string            // unique; letters, digits, '.', '_', '-'; the batch system shows it back
	Program   string            // one of ours below the site's root, with Argv as its arguments; empty: Argv has all
	Argv      []string          // without a Program an absolute path first; run in the job's own directory at the site
	Files     map[string][]byte // private files (0600) that stand in that directory before the job starts
	Hosts     int
	CPUs      int           // per host
	MemoryMiB int           // per host; 0: the site's default
	Walltime  time.Duration // 0: the site's default
	GPUs      int           // per host

	corral.BatchOptions          // a batch system that has no such thing leaves it out
	Exclude             []string // nodes to keep off
}

// NodeFile is what of a job's directory may say, as Exclude does, on which node the job began.
const NodeFile = "node"

// A Phase is how far the batch system says a job is.
type Phase string

const (
	Queued  Phase = "queued"
	Running Phase = "running"
	Ended   Phase = "ended"
)

// A JobStatus is what a batch system knows of a job.
type JobStatus struct {
	Tag       string
	ID        string // the site's own id
	Phase     Phase
	Exit      *int   // once ended, if known
	Killed    Killed // once ended: who ended it, if it did not end itself
	Says      string // the batch system's own word for that end, such as TIMEOUT; empty: it has none
	StartedAt time.Time
	EndedAt   time.Time

	// Waits is why a queued job has not started, in the batch system's own words; empty: it does not say. Never means
	// that by its present rules it will not: Waits names what forbids it.
	Waits string
	Never bool

	// Extra are the ids of further jobs under the tag that have not ended: a submission whose answer was lost may come
	// in after it was repeated. What is said above is of the one job that counts: that runs, or else that was there
	// first. A Batch that ever says so is a Pruner.
	Extra []string
	Past  []string // those that have ended, while the batch system remembers them
}

// Killed says who ended a job that did not end itself.
type Killed string

const (
	NotKilled     Killed = ""
	ByWalltime    Killed = "walltime"    // the batch system, when the walltime was over
	ByCancel      Killed = "cancel"      // we asked for it
	ByDisappeared Killed = "disappeared" // its processes are gone and left no exit status
	ByPreemption  Killed = "preempted"   // the batch system, for another job
	ByNode        Killed = "node"        // a node of it failed
	ByMemory      Killed = "memory"      // the batch system, because it used more memory than it was given
	BySite        Killed = "site"        // the batch system, for a limit or because somebody else asked it to
)

// Batch submits and follows jobs at one site. Every method may be repeated. A *Refused, or an error
// of kind corral.Invalid or corral.Unavailable, means that nothing was done; after any other we do
// not know, and the caller looks before it repeats.
type Batch interface {
	// Submit queues a job and returns the site's id for it. A second submission under the same tag
	// may return the first one's id or make a second job: the caller looks the tag up first.
	Submit(ctx context.Context, spec JobSpec) (id string, err error)

	// Poll reports on the jobs under tags in one round trip. A tag that the site knows nothing about
	// is absent from the result.
	Poll(ctx context.Context, tags []string) (map[string]JobStatus, error)

	// Cancel ends the job and everything it started: politely, then after grace by force. It returns
	// once nothing of it is left. Cancelling a job that has ended, or never was, is not an error.
	Cancel(ctx context.Context, tag string, grace time.Duration) error

	// Read returns a file of the job's directory at the site: stdout, stderr, or one that the job
	// wrote; fs.ErrNotExist if there is none.
	Read(ctx context.Context, tag, name string) ([]byte, error)

	// Forget removes what the site keeps of an ended job.
	Forget(ctx context.Context, tag string) error
}

// Refused is a site's definite no: nothing was done. Its text is the site's own.
type Refused struct {
	Text      string
	Transient bool                // the same request may be accepted later
	Class     corral.FailureClass // what has to happen first; only if Transient
}

func (e *Refused) Error() string { return e.Text }
