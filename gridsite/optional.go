package gridsite

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
)

// Capabilities that not every batch system or transport has are small interfaces. Code that needs one tests the Batch
// or Conn for it, and works without it if it is missing.

// A Bearer is a Remote that can name its credentials. Without it, users are not warned before a credential expires.
type Bearer interface {
	// Credentials returns the credentials that the current or last connection was made with, read again from their
	// files, so that a replaced one is the new one. It is empty if no login succeeded, or if only credentials without
	// an expiry were used.
	Credentials() []credential.Credential
}

// A Checker is a Batch that can test a job without queueing it. Without it, invalid options are detected only by the
// first pilot.
type Checker interface {
	// Check returns a *Refused with the site's own words if the batch system would refuse the job.
	Check(ctx context.Context, spec JobSpec) error
}

// Many applies methods of Batch to many jobs in one round trip. Without it, reading, cancelling and forgetting cost one
// command per job.
type Many interface {
	// ReadMany returns files of jobs' directories, by tag and name. Missing files are absent; a file longer than
	// MaxReadMany is represented by its end.
	ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error)

	// CancelMany cancels all jobs and returns when that is done. The error names the jobs that were not ended, with
	// reasons; the others were.
	CancelMany(ctx context.Context, tags []string, grace time.Duration) error

	// ForgetMany forgets all jobs. The error names what remains, with reasons.
	ForgetMany(ctx context.Context, tags []string) error
}

// A Lister is a Batch that can list the jobs of which it keeps data. Without it, jobs that the store does not know are
// not found: pilots after the loss of a database, or directories that were not removed when their jobs ended.
type Lister interface {
	// Tags returns the tags of all jobs, live or ended, of which the site keeps any data, in alphabetical order. It
	// needs one command.
	Tags(ctx context.Context) ([]string, error)
}

// A Pruner is a Batch in which a tag may have more than one job; see JobStatus.Extra. A Batch that sets Extra must be
// one.
type Pruner interface {
	// CancelJobs ends jobs by the site's own ids, without affecting other jobs under their tags.
	CancelJobs(ctx context.Context, ids []string) error
}

// MaxReadMany is the maximum number of bytes of one file that ReadMany returns.
const MaxReadMany = 128 * 512

// A Surveyor is a Batch that can report its resources and limits. Without it, queues and limits are unknown. The answer
// does not set Outbound and Shared, which are measured on a node.
type Surveyor interface {
	// Survey finds out, with one command at the site, which resources pilots with these options may use there. Gaps are
	// listed in the answer's Notes, and their numbers are 0. An error means that the site cannot be reached or that
	// this batch system does not answer there.
	Survey(ctx context.Context, options corral.BatchOptions) (corral.SiteFacts, error)
}

// An Observer is a Batch that can show who holds the processors of a queue, and who waits for them.
type Observer interface {
	// Backlog queries a queue with one command at the site; an empty name is the default queue. Errors are those of
	// Survey; an unknown queue is an error of kind NotFound.
	Backlog(ctx context.Context, queue string) (corral.Backlog, error)
}
