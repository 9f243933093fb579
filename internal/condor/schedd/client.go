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

// A Client asks an HTCondor schedd for jobs that have something in common: those of a run, or the worker jobs of
// a cluster. They share the value of one attribute, their name, by which they are found again whatever numbers the
// schedd has given them.
//
// An error says that the schedd gave no answer: what was asked may have been done or not. That is why every command is
// one that may be repeated, but for a submission, after which the queue is looked up.

// HTCondor's numbers of what a job is doing, in JobStatus.
const (
	Idle    = 1
	Running = 2
	Removed = 3
	Held    = 5
)

// toolTime bounds one command of HTCondor.
const toolTime = 30 * time.Second

// batchSize is how many jobs one command names.
const batchSize = 500

// A Client runs HTCondor's commands on jobs whose attribute has the jobs' name for its value.
type Client struct {
	Tools     condor.Tools
	Attribute string
}

// mine selects the jobs.
func (c Client) mine(name string) []string {
	return []string{"-constraint", c.Attribute + " =?= " + classad.FormatNew(name)}
}

// Queue returns the ads of the jobs that are in the schedd's queue.
func (c Client) Queue(ctx context.Context, name string, attributes ...string) ([]classad.Ad, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.Tools.Query(ctx, "condor_q", c.mine(name), attributes)
}

// Submit submits jobs, and returns the cluster that they became. The error may also be that HTCondor refused them.
func (c Client) Submit(ctx context.Context, s condor.Submit) (cluster int, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	return c.Tools.Submit(ctx, s)
}

// Rank gives some of the jobs another priority among those of their user. That one is not there is fine.
func (c Client) Rank(ctx context.Context, name string, priority int64, jobs ...eventlog.JobID) error {
	for part := range slices.Chunk(jobs, batchSize) {
		if err := c.rank(ctx, name, priority, part); err != nil {
			return err
		}
	}
	return nil
}

// rank runs one condor_qedit. The list keeps the constraint flat, where HTCondor bounds how deep one may be.
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

// Remove takes jobs out of the queue. That one is not there is fine.
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

// rm runs condor_rm on jobs, named or selected.
func (c Client) rm(ctx context.Context, which []string) error {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	_, err := c.Tools.Run(ctx, nil, "condor_rm", which...)
	return unlessRefused(err)
}

// unlessRefused drops a refusal: it says that there is no such job, with which nothing remains to be done.
func unlessRefused(err error) error {
	var no *condor.Refused
	if errors.As(err, &no) {
		return nil
	}
	return err
}

// RemoveAll takes all the jobs out of the queue, and returns an error also if some are still there. An empty name has
// never had jobs.
func (c Client) RemoveAll(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	if err := c.rm(ctx, c.mine(name)); err != nil {
		return err
	}
	// A removed job stays in the queue until its worker has let go of it; that is no longer ours to wait for.
	left, err := c.Queue(ctx, name, "JobStatus")
	for _, ad := range left {
		if status, _ := ad.Int("JobStatus"); err == nil && status != Removed {
			err = errors.New("jobs are still in the queue after condor_rm")
		}
	}
	return err
}

// IDOf is the number that the schedd has given a job of its queue.
func IDOf(ad classad.Ad) eventlog.JobID {
	cluster, _ := ad.Int("ClusterId")
	proc, _ := ad.Int("ProcId")
	return eventlog.JobID{Cluster: int(cluster), Proc: int(proc)}
}

// Priority is what jobs of this class and upward rank have among those of their user: whole seconds, which is enough of
// an order, and a higher class before all ranks.
func Priority(class int, rank float64) int64 {
	if class != 0 {
		rank = float64(class)*classStep + min(rank, classStep-1)
	}
	return int64(math.Round(max(-math.MaxInt32, min(rank, math.MaxInt32))))
}

// classStep is more than nearly all ranks: a job of a higher class goes first whatever its rank.
const classStep = 1e6
