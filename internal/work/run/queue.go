package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Queue takes the jobs of runs: a personal cluster's dispatcher. Its methods may be called from any
// goroutine, but not from a Sink's.
type Queue interface {
	// Attach makes sink the owner of the run's jobs.
	Attach(run corral.RunID, sink dispatch.Sink)
	// Detach forgets the run and its jobs; the sink is not called again.
	Detach(run corral.RunID)
	Jobs
}

// Jobs are those of a queue.
type Jobs interface {
	// Submit queues jobs of an attached run.
	Submit(jobs []execution.Job)
	// Cancel kills what runs of the run and returns all its jobs, through the sink; if jobs are named, by their
	// numbers, these alone. One that the queue does not have is none.
	Cancel(run corral.RunID, jobs ...int64)
	// Withdraw returns jobs of the run that no worker has, through the sink. It leaves the others as they are.
	Withdraw(run corral.RunID, seqs []int64)
	// Expect says that worker may have these jobs, from before a restart. If it does not come back
	// with them in time, they are returned.
	Expect(run corral.RunID, worker string, jobs []execution.Job)
}

// Clusters finds queues, and says what could take a task. It stands between runs and the two kinds of clusters, of
// which a run knows neither.
type Clusters interface {
	// Queue returns a cluster's queue for runs with these options, NotFound if the cluster is gone.
	Queue(id corral.ClusterID, o corral.RunOptions) (Queue, error)
	// Offer says what workers a cluster has and expects, NotFound if the cluster is gone.
	Offer(ctx context.Context, id corral.ClusterID) (execution.Offer, error)
}
