package pilot

import (
	"time"

	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// Setup and Cleanup are the two jobs that maintain a site. The setup job installs a worker package below the site's
// root, before any pilot needs it. The cleanup job removes everything below that root, when the site is removed.
//
// Both work like all of corrald's jobs at a site: the job finds its order in its directory, carries it out, and leaves
// its report there (package jobfiles), so that corrald can read the outcome from a file, even if the batch system no
// longer knows it. Neither starts a process, and neither needs a connection to corrald. Both may be repeated: a second
// setup finds that the package is installed, and a second cleanup finds nothing left.

// perform reads the order in dir, calls do, and writes the report to dir. An error means that there is no order, or
// that the report could not be written.
func perform(dir string, do func(jobfiles.Order) jobfiles.Report) (jobfiles.Report, error) {
	started := time.Now()
	o, err := jobfiles.Read(dir)
	if err != nil {
		return jobfiles.Report{}, err
	}
	r := do(o)
	r.StartedAt, r.EndedAt = started.UTC(), time.Now().UTC()
	return r, jobfiles.WriteReport(dir, r)
}
