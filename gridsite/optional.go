package gridsite

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
)

// Capabilities that not every batch system or transport has are defined as small interfaces. Code that needs a
// capability tests whether the Batch or Conn implements the interface, and works without the capability otherwise.

// A Bearer is a Remote that can name its credentials. Without it, users are not warned before a credential expires.
type Bearer interface {
	// Credentials returns the credentials with which the current or last connection was made. They are read again from
	// their files, so that the result contains the latest versions. The list is empty if no login succeeded, or if only
	// credentials without an expiry were used.
	Credentials() []credential.Credential
}

// A Checker is a Batch that can test a job without queueing it. Without it, invalid options are detected only by the
// first pilot.
type Checker interface {
	// Check returns a *Refused with the site's own words if the batch system would refuse the job.
	Check(ctx context.Context, spec JobSpec) error
}

// A Forecaster is a Batch that can predict how long a job would wait.
type Forecaster interface {
	// Forecast returns the predicted wait of a job if it were submitted now. Nothing remains at the site. The errors
	// are those of Checker; the error is Unsatisfiable if there is no prediction.
	Forecast(ctx context.Context, spec JobSpec) (time.Duration, error)
	// ForecastBy names the source of the predictions.
	ForecastBy() string
}

// Many applies methods of Batch to many jobs in one round trip. Without it, reading, cancelling and forgetting cost one
// command per job.
type Many interface {
	// ReadMany returns files of jobs' directories, by tag and name. Missing files are absent from the result; of a file
	// longer than MaxReadMany, only the end is returned.
	ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error)

	// CancelMany cancels all jobs and returns when they have ended. The error names the jobs that could not be ended,
	// with reasons; the others were ended.
	CancelMany(ctx context.Context, tags []string, grace time.Duration) error

	// ForgetMany forgets all jobs. The error names the jobs whose data remains, with reasons.
	ForgetMany(ctx context.Context, tags []string) error
}

// A Lister is a Batch that can list the jobs of which it keeps data. Without it, jobs that are not in corrald's
// database are not found: pilots after the loss of a database, or directories that were not removed when their jobs
// ended.
type Lister interface {
	// Tags returns the tags of all jobs, live or ended, of which the site keeps any data, in alphabetical order. It
	// needs one command.
	Tags(ctx context.Context) ([]string, error)
}

// A Pruner is a Batch in which a tag may have more than one job; see JobStatus.Extra. A Batch that sets Extra must be a
// Pruner.
type Pruner interface {
	// CancelJobs ends jobs by the site's own ids, without affecting other jobs under their tags.
	CancelJobs(ctx context.Context, ids []string) error
}

// MaxReadMany is the maximum number of bytes of one file that ReadMany returns.
const MaxReadMany = 128 * 512

// A Surveyor is a Batch that can report its resources and limits. Without it, queues and limits are unknown. The answer
// does not set Outbound and Shared, which are measured on a node.
type Surveyor interface {
	// Survey determines, with one command at the site, the resources that pilots with these options may use there.
	// Unknown facts are listed in the answer's Notes, and their numbers are 0. An error means that the site cannot be
	// reached or that this batch system does not answer there.
	Survey(ctx context.Context, options corral.BatchOptions) (corral.SiteFacts, error)
}

// An Observer is a Batch that can show who holds the processors of a queue, and who waits for them.
type Observer interface {
	// Backlog queries a queue with one command at the site; an empty name is the default queue. The errors are the same
	// as those of Survey; for an unknown queue the error is of kind NotFound.
	Backlog(ctx context.Context, queue string) (corral.Backlog, error)
}
