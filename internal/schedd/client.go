package schedd

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// toolTime bounds one command of HTCondor.
const toolTime = 30 * time.Second

// removeSize is how many jobs one condor_rm names.
const removeSize = 500

// A client runs HTCondor's commands on the jobs of one run, which it knows by the run's name in the schedd. An error
// says that the schedd gave no answer: what was asked may have been done or not. That is why every command is one that
// may be repeated, but for a submission, after which the queue is looked up.
type client struct {
	tools condor.Tools
}

// mine selects a run's jobs.
func mine(name string) []string {
	return []string{"-constraint", runAttribute + " =?= " + classad.FormatNew(name)}
}

// queue returns the ads of the run's jobs that are in the schedd's queue.
func (c client) queue(ctx context.Context, name string, attributes ...string) ([]classad.Ad, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.tools.Query(ctx, "condor_q", mine(name), attributes)
}

// submit submits jobs, and returns the cluster that they became. The error may also be that HTCondor refused them.
func (c client) submit(ctx context.Context, s condor.Submit) (cluster int, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.tools.Submit(ctx, s)
}

// remove takes jobs out of the queue. That one is not there is fine.
func (c client) remove(ctx context.Context, jobs map[eventlog.JobID]bool) error {
	ids := make([]string, 0, len(jobs))
	for id := range jobs {
		ids = append(ids, id.String())
	}
	for part := range slices.Chunk(ids, removeSize) {
		if err := c.rm(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// rm runs condor_rm on jobs, named or selected. A refusal says that there is no such job, which is what was wanted.
func (c client) rm(ctx context.Context, which []string) error {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	_, err := c.tools.Run(ctx, nil, "condor_rm", which...)
	var no *condor.Refused
	if errors.As(err, &no) {
		return nil
	}
	return err
}

// removeAll takes all jobs of the run out of the queue, and returns an error also if some are still there. A run
// without a name has never submitted any.
func (c client) removeAll(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	if err := c.rm(ctx, mine(name)); err != nil {
		return err
	}
	// A removed job stays in the queue until its worker has let go of it; that is no longer ours to wait for.
	left, err := c.queue(ctx, name, "JobStatus")
	for _, ad := range left {
		if status, _ := ad.Int("JobStatus"); err == nil && status != statusRemoved {
			err = errors.New("the run's jobs are still in the queue")
		}
	}
	return err
}
