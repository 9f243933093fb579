package schedd

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// A Client manages jobs in an HTCondor schedd that share the value of one attribute, their name: the jobs of a run, or
// a cluster's worker jobs. The name identifies these jobs whatever numbers the schedd has assigned.
//
// An error means that the schedd did not answer: the command may or may not have been executed. So every command can
// safely be repeated, except a submission, after which the queue is consulted.

// HTCondor's values of JobStatus.
const (
	Idle    = 1
	Running = 2
	Removed = 3
	Held    = 5
)

// toolTime is the time limit for one HTCondor command.
const toolTime = 30 * time.Second

// batchSize is the number of jobs in one command.
const batchSize = 500

// A Client runs HTCondor's commands on jobs whose Attribute equals their name.
type Client struct {
	Tools     condor.Tools
	Attribute string
}

// mine returns the arguments that select the jobs.
func (c Client) mine(name string) []string {
	return []string{"-constraint", c.Attribute + " =?= " + classad.FormatNew(name)}
}

// Queue returns the ads of the jobs in the schedd's queue.
func (c Client) Queue(ctx context.Context, name string, attributes ...string) ([]classad.Ad, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.Tools.Query(ctx, "condor_q", c.mine(name), attributes)
}

// Submit submits jobs and returns their cluster number. The error may also mean that HTCondor refused them.
func (c Client) Submit(ctx context.Context, s condor.Submit) (cluster int, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.Tools.Submit(ctx, s)
}

// Rank changes the priority of some of the jobs relative to their user's other jobs. Missing jobs are not an error.
func (c Client) Rank(ctx context.Context, name string, priority int64, jobs ...eventlog.JobID) error {
	for part := range slices.Chunk(jobs, batchSize) {
		if err := c.rank(ctx, name, priority, part); err != nil {
			return err
		}
	}
	return nil
}

// rank runs one condor_qedit. The list keeps the constraint flat, because HTCondor limits the nesting depth.
func (c Client) rank(ctx context.Context, name string, priority int64, jobs []eventlog.JobID) error {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	ids := make([]any, 0, len(jobs))
	for _, id := range jobs {
		ids = append(ids, id.String())
	}
	which := c.mine(name)
	which[1] += ` && member(strcat(ClusterId, ".", ProcId), ` + classad.FormatNew(ids) + ")"
	_, err := c.Tools.Run(ctx, nil, "condor_qedit", append(which, "JobPrio", strconv.FormatInt(priority, 10))...)
	return unlessRefused(err)
}

// Remove removes jobs from the queue. Missing jobs are not an error.
func (c Client) Remove(ctx context.Context, jobs map[eventlog.JobID]bool) error {
	ids := make([]string, 0, len(jobs))
	for id := range jobs {
		ids = append(ids, id.String())
	}
	for part := range slices.Chunk(ids, batchSize) {
		if err := c.rm(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// rm runs condor_rm on jobs given by ids or by a constraint.
func (c Client) rm(ctx context.Context, which []string) error {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	_, err := c.Tools.Run(ctx, nil, "condor_rm", which...)
	return unlessRefused(err)
}

// unlessRefused returns nil for a refusal, which means that the job does not exist, so that no action is needed.
func unlessRefused(err error) error {
	if _, ok := errors.AsType[*condor.Refused](err); ok {
		return nil
	}
	return err
}

// RemoveAll removes all jobs with the given name from the queue. It also returns an error if some of them are still
// there. No job ever has an empty name.
func (c Client) RemoveAll(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	if err := c.rm(ctx, c.mine(name)); err != nil {
		return err
	}
	// A removed job stays in the queue until its worker has released it; we need not wait for that.
	left, err := c.Queue(ctx, name, "JobStatus")
	for _, ad := range left {
		if status, _ := ad.Int("JobStatus"); err == nil && status != Removed {
			err = errors.New("jobs are still in the queue after condor_rm")
		}
	}
	return err
}

// IDOf returns the id that the schedd has assigned to a job in its queue.
func IDOf(ad classad.Ad) eventlog.JobID {
	cluster, _ := ad.Int("ClusterId")
	proc, _ := ad.Int("ProcId")
	return eventlog.JobID{Cluster: int(cluster), Proc: int(proc)}
}

// Priority returns the priority of jobs of this class and upward rank among their user's jobs: ranks are rounded to
// whole seconds, which is precise enough, and a higher class precedes all ranks.
func Priority(class int, rank float64) int64 {
	if class != 0 {
		rank = float64(class)*classStep + min(rank, classStep-1)
	}
	return int64(math.Round(max(-math.MaxInt32, min(rank, math.MaxInt32))))
}

// classStep exceeds nearly all ranks, so that a job of a higher class precedes other jobs whatever its rank.
const classStep = 1e6
