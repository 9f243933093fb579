package corral

import (
	"fmt"
	"time"
)

// ClusterID identifies a personal cluster.
type ClusterID int64

// A ClusterKind identifies the engine that runs a personal cluster.
type ClusterKind string

const (
	Embedded ClusterKind = "embedded" // corrald's own dispatcher, for one machine and small sites
	Condor   ClusterKind = "condor"   // HTCondor
)

// A ClusterState specifies whether workers may register. An embedded cluster is READY until it is DELETED.
type ClusterState string

const (
	ClusterStarting ClusterState = "STARTING" // recorded; its pool is being started or located
	ClusterReady    ClusterState = "READY"    // workers may register and jobs may be submitted
	ClusterStopping ClusterState = "STOPPING" // its daemons have been told to end
	ClusterStopped  ClusterState = "STOPPED"  // no daemon runs; the queue is kept
	ClusterRemoving ClusterState = "REMOVING" // its daemons are ending, then its folder is deleted
	ClusterDeleted  ClusterState = "DELETED"  // tombstone
	ClusterFailed   ClusterState = "FAILED"   // it did not start; start it again or remove it
)

// ClusterStates lists all states in their order of life.
var ClusterStates = []ClusterState{ClusterStarting, ClusterReady, ClusterStopping, ClusterStopped,
	ClusterRemoving, ClusterDeleted, ClusterFailed}

// A ClusterMove names an event of a cluster's life.
type ClusterMove string

const (
	ClusterStart   ClusterMove = "start" // also for a READY cluster, which is restarted
	ClusterStarted ClusterMove = "started"
	ClusterStop    ClusterMove = "stop"
	ClusterStopEnd ClusterMove = "stopped"
	ClusterFail    ClusterMove = "fail"
	ClusterRemove  ClusterMove = "remove"
	ClusterRemoved ClusterMove = "removed"
)

// A Cluster is the pool that workers join. Fields that describe a pool apply only to HTCondor pools (kind condor).
type Cluster struct {
	ID        ClusterID    `json:"id"`
	Name      string       `json:"name"`
	Owner     string       `json:"owner"`
	Kind      ClusterKind  `json:"kind"`
	Attached  bool         `json:"attached,omitempty"`       // the pool is run by someone else
	Collector string       `json:"collector,omitempty"`      // the pool's, HOST:PORT
	Schedd    string       `json:"schedd,omitempty"`         // name of an attached pool's schedd; empty: not found yet
	ScheddAt  string       `json:"schedd_address,omitempty"` // an attached pool's, HOST:PORT; empty: the collector's
	HTCondor  string       `json:"htcondor,omitempty"`       // the pool's installation: a package's name, or a folder
	Version   string       `json:"version,omitempty"`        // of the pool's HTCondor; empty while unknown
	State     ClusterState `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// Apply moves the cluster by one event; no other code sets State.
func (c Cluster) Apply(move ClusterMove, reason string, now time.Time) (Cluster, []Entry, error) {
	from := c.State
	next, err := ClusterMoves.Next(from, move)
	if err != nil {
		return c, nil, ErrorAt(Conflict, "cluster "+c.Name, "%w", err)
	}
	c.State, c.Reason, c.UpdatedAt = next, reason, latest(now, c.UpdatedAt)
	return c, []Entry{{Object: ObjectCluster, Of: int64(c.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}

// Takes returns a Conflict error unless the cluster accepts glideins and runs.
func (c Cluster) Takes() error {
	if c.State != ClusterReady {
		return Errorf(Conflict, "cluster %s is %s", c.Name, c.State)
	}
	return nil
}

// Idle explains why a cluster that is not READY accepts no glideins or runs, and what the user can do. The text
// completes "cluster NAME ".
func (c Cluster) Idle() string {
	switch c.State {
	case ClusterStarting:
		return "is STARTING: try again when it is READY"
	case ClusterStopping:
		return fmt.Sprintf("is STOPPING: `corral cluster start %s` starts it again when it is STOPPED", c.Name)
	case ClusterStopped, ClusterFailed:
		return fmt.Sprintf("is %s: `corral cluster start %s` starts it", c.State, c.Name)
	}
	return fmt.Sprintf("is %s", c.State)
}

// A PoolToken permits an attempt's workers to join an HTCondor pool. The token's text is not stored.
type PoolToken struct {
	ID      string // jti
	Cluster ClusterID
	Attempt JobID
	EndsAt  time.Time
}

// A Worker is one host's daemon that registered in a cluster.
type Worker struct {
	ID           string    `json:"id"` // the attempt's tag and the host number: unique in the cluster
	Cluster      ClusterID `json:"cluster_id"`
	Glidein      GlideinID `json:"glidein_id"`
	Attempt      JobID     `json:"attempt_id"`
	Host         string    `json:"host"`
	PID          int       `json:"pid"`
	CPUs         int       `json:"cpus"`
	CPUsFree     int       `json:"cpus_free"`
	MemoryMiB    int       `json:"memory_mib"`
	MemoryFree   int       `json:"memory_free_mib"`
	GPUs         int       `json:"gpus,omitempty"`
	GPUsFree     int       `json:"gpus_free,omitempty"`
	DiskMiB      int       `json:"disk_mib,omitempty"`
	DiskFree     int       `json:"disk_free_mib,omitempty"`
	Draining     bool      `json:"draining"` // accepts no new tasks
	Connected    bool      `json:"connected"`
	RunningTasks int       `json:"running_tasks"`
	DoneTasks    int       `json:"done_tasks"`
	RegisteredAt time.Time `json:"registered_at"`
	SeenAt       time.Time `json:"seen_at"`
	EndsAt       time.Time `json:"ends_at"` // latest time at which it leaves by itself
	Speed        Speed     `json:"speed,omitempty"`
}

// Resources returns all resources that the worker offers to tasks, whether or not they are free now.
func (w Worker) Resources() Resources {
	return Resources{CPUs: w.CPUs, MemoryMiB: w.MemoryMiB, GPUs: w.GPUs, DiskMiB: w.DiskMiB}
}

// Free returns the resources that no task uses. An unknown component is Unlimited.
func (w Worker) Free() Resources {
	return Resources{CPUs: w.CPUsFree, MemoryMiB: w.MemoryFree, GPUs: w.GPUsFree, DiskMiB: w.DiskFree}
}

// SetFree sets the resources that no task of the worker uses.
func (w *Worker) SetFree(r Resources) {
	w.CPUsFree, w.MemoryFree, w.GPUsFree, w.DiskFree = r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB
}
