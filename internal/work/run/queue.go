package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// A Dispatcher passes the jobs of runs to the workers of a personal cluster. Its methods may be called from any
// goroutine, but not from the methods of a Sink.
type Dispatcher interface {
	// Attach makes sink the owner of the run's jobs.
	Attach(run corral.RunID, sink dispatch.Sink)
	// Detach removes the run and its jobs; the sink is not called again.
	Detach(run corral.RunID)
	Jobs
}

// Jobs are the operations on the jobs of a queue.
type Jobs interface {
	// Submit queues jobs of an attached run.
	Submit(jobs []execution.Job)
	// Cancel kills the run's running jobs and returns all its jobs, through the sink. If numbers of jobs are given, it
	// cancels only these. Unknown numbers are ignored.
	Cancel(run corral.RunID, jobs ...int64)
	// Withdraw returns jobs of the run that no worker has, through the sink. It does not change the others.
	Withdraw(run corral.RunID, seqs []int64)
	// Expect reports that worker may have these jobs from before a restart. If it does not come back with them in time,
	// they are returned.
	Expect(run corral.RunID, worker string, jobs []execution.Job)
}

// Clusters provides the queues and the offers of clusters. It separates runs from the two kinds of clusters, on which
// they do not depend.
type Clusters interface {
	// Queue returns a cluster's queue for runs with these options, or a NotFound error if the cluster does not exist.
	Queue(id corral.ClusterID, o corral.RunOptions) (Dispatcher, error)
	// Offer returns the workers that a cluster has and expects, or a NotFound error if the cluster does not exist.
	Offer(ctx context.Context, id corral.ClusterID) (execution.Offer, error)
}
