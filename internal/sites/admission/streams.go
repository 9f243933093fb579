package admission

import (
	"crypto/subtle"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/work/run"
)

// Streams is implemented by Pools whose clusters support worker jobs.
type Streams interface {
	// Stream returns the queue of a READY cluster whose tasks are sent to worker jobs.
	Stream(cluster corral.ClusterID) (*stream.Stream, error)
	// Streamed returns that queue if Stream has been called for the cluster before, and nil otherwise. The cluster
	// need not be READY.
	Streamed(cluster corral.ClusterID) *stream.Stream
}

// StreamTerms returns the configuration for the dispatchers of worker jobs, which is the same as for embedded clusters.
func StreamTerms(c *Clusters) dispatch.Config { return c.cfg }

// The worker jobs of an HTCondor cluster connect like workers. HTCondor assigned their slots, so they hold no lease
// of an attempt; they are admitted by the token of their cluster's stream. They name the pool worker on which they
// run and share its attempt's fate: if the attempt is asked to drain, its worker jobs also drain.

// A streamDoor admits worker jobs. The zero value admits none.
type streamDoor struct{ streams Streams }

// known returns a cluster's stream, or nil if it has not been needed so far.
func (d streamDoor) known(id corral.ClusterID) *stream.Stream {
	if d.streams == nil {
		return nil
	}
	return d.streams.Streamed(id)
}

// queue returns a cluster's stream for a run.
func (d streamDoor) queue(cluster corral.Cluster) (run.Dispatcher, error) {
	if d.streams == nil {
		return nil, corral.ErrorAt(corral.Unavailable, "cluster "+cluster.Name, "this corrald has no worker jobs")
	}
	s, err := d.streams.Stream(cluster.ID)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open returns a cluster's stream for a worker job with this tag. After a restart of corrald, worker jobs may connect
// before any run.
func (d streamDoor) open(id corral.ClusterID, tag string) (*stream.Stream, error) {
	unknown := corral.ErrorAt(corral.Unauthenticated, "worker job "+tag, "is not known here")
	if d.streams == nil {
		return nil, unknown
	}
	s, err := d.streams.Stream(id)
	switch corral.KindOf(err) {
	case corral.NotFound:
		return nil, unknown
	case corral.Conflict: // the pool is stopped and may be started again
		return nil, corral.ErrorAt(corral.Unavailable, "worker job "+tag, "%w", err)
	}
	return s, err
}

// admit is Clusters.Admit for the worker of one of this cluster's worker jobs; look finds the attempt of its glidein
// by tag.
func (d streamDoor) admit(
	id corral.ClusterID, cred port.Credentials, look func(tag string) (visitor, error),
) (in port.Admission, err error) {
	at := "worker job " + cred.Tag
	s, err := d.open(id, cred.Tag)
	switch {
	case err != nil:
		return in, err
	case subtle.ConstantTimeCompare([]byte(s.TokenDigest()), []byte(cred.TokenDigest)) != 1:
		return in, corral.ErrorAt(corral.Unauthenticated, at, "the token is not that of worker jobs")
	case cred.Role == wire.RolePilot:
		return in, corral.ErrorAt(corral.Forbidden, at, "is not a pilot")
	}
	tag, _, _ := strings.Cut(cred.Holder, "/")
	v, err := look(tag)
	switch {
	case corral.KindOf(err) == corral.NotFound, err == nil && v.cluster.ID != id:
		return in, corral.ErrorAt(corral.Forbidden, at, "runs on a glidein that is not known here")
	case err != nil:
		return in, err
	case !v.job.Live():
		return in, corral.ErrorAt(corral.Forbidden, at, "its glidein has ended as %s", v.job.Outcome)
	}
	if err := v.jobFits(cred); err != nil {
		return in, err
	}
	return port.Admission{Attempt: v.job.ID, Glidein: v.glidein.ID, Cluster: id, Dispatcher: s.Dispatcher(),
		CPUs: v.glidein.Hosts * v.glidein.CPUs}, nil
}

// admitThrough decides on a worker job's request that came through a site's relay. The glidein on which the job runs
// is checked at the port.
func (d streamDoor) admitThrough(id corral.ClusterID, q relay.Request) error {
	s, err := d.open(id, q.Tag)
	switch {
	case err != nil && corral.KindOf(err) != corral.Unauthenticated:
		return corral.Errorf(corral.Unavailable, "corrald cannot look it up now")
	case err != nil, !q.Proves(s.TokenDigest()):
		return corral.ErrorAt(corral.Unauthenticated, place(q.Tag), "is not known here")
	case q.Target != relay.Workers:
		return corral.ErrorAt(corral.Forbidden, place(q.Tag), "may not reach a pool")
	}
	return nil
}

// regard adds to a pool's workers the activity of their worker jobs, which HTCondor shows as busy slots: the number
// of tasks running there, and the resources that no task uses as free.
func regard(workers, streamed []corral.Worker) {
	for _, s := range streamed {
		for i := range workers {
			if w := &workers[i]; s.Connected && w.Connected && w.ID == jobfiles.OnGlidein(s.ID) {
				free := w.Free().Plus(s.Free())
				w.SetFree(corral.Resources{
					CPUs: min(w.CPUs, free.CPUs), MemoryMiB: min(w.MemoryMiB, free.MemoryMiB),
					GPUs: min(w.GPUs, free.GPUs), DiskMiB: w.DiskFree,
				})
				w.RunningTasks = max(0, w.RunningTasks-1) + s.RunningTasks
			}
		}
	}
}
