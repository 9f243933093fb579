package gridsite

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
)

// What not every batch system, or every transport, can do is a small interface of its own. Code that wants one asks the
// Batch or the Conn for it, and does without where it is missing.

// A Bearer is a Remote that can say by what it was let in. Without it nobody is warned before a credential expires.
type Bearer interface {
	// Credentials are those by which the connection that stands was made, or the last one that did, as their files are
	// now: one that was replaced is the new one. Empty: it was never let in, or by something that cannot expire.
	Credentials() []credential.Credential
}

// A Checker is a Batch that can say whether it would take a job, without taking it. Without it bad options show with
// the first pilot.
type Checker interface {
	// Check returns a *Refused with the site's own words if it would not.
	Check(ctx context.Context, spec JobSpec) error
}

// Many does for many jobs, in one round trip, what Batch does for one. Without it reading, cancelling and forgetting
// cost a command for each job.
type Many interface {
	// ReadMany returns files of jobs' directories, by tag and name. One that is not there is absent; of one longer than
	// MaxReadMany it is the end.
	ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error)

	// CancelMany does what Cancel does for each, and returns when that is done for all. The error says which were not
	// ended, and why; the others were.
	CancelMany(ctx context.Context, tags []string, grace time.Duration) error

	// ForgetMany does what Forget does for each. The error says what stays, and why.
	ForgetMany(ctx context.Context, tags []string) error
}

// A Lister is a Batch that can say of which jobs it keeps something. Without it nobody finds what the store has lost
// sight of: pilots after the loss of a database, or directories that were not removed when their jobs were over.
type Lister interface {
	// Tags returns the tags of all jobs, alive or over, of which the site keeps anything, in alphabetical order. It is
	// one command.
	Tags(ctx context.Context) ([]string, error)
}

// A Pruner is a Batch in which a tag may have more than one job: see JobStatus.Extra. A Batch that ever says so must be
// one.
type Pruner interface {
	// CancelJobs ends jobs by the site's own ids, and leaves other jobs under their tags alone.
	CancelJobs(ctx context.Context, ids []string) error
}

// MaxReadMany is how much of one file ReadMany returns, in bytes.
const MaxReadMany = 128 * 512

// A Surveyor is a Batch that can say what it has and what it allows. Without it nothing is known of queues and limits.
// The answer has no Outbound and no Shared: those are seen from a node.
type Surveyor interface {
	// Survey finds out, in one command at the site, what pilots with these options may have there. What it cannot find
	// out is in the answer's Notes, and its numbers are then 0. An error is one of the way to the site, or
	// says that this batch system does not answer there.
	Survey(ctx context.Context, options corral.BatchOptions) (corral.SiteFacts, error)
}

// An Observer is a Batch that can say who holds the processors of a queue, and who waits for them.
type Observer interface {
	// Backlog asks, in one command at the site, about a queue; the default one if the name is empty. Errors are as of
	// Survey; a queue that there is not is one of kind NotFound.
	Backlog(ctx context.Context, queue string) (corral.Backlog, error)
}
