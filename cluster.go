package corral

import "time"

// ClusterID identifies a personal cluster.
type ClusterID int64

// A ClusterKind says which engine a personal cluster has.
type ClusterKind string

const (
	Embedded ClusterKind = "embedded" // corrald's own dispatcher: one machine and small sites
	Condor   ClusterKind = "condor"   // HTCondor
)

// A ClusterState says whether workers may register.
type ClusterState string

const (
	ClusterReady   ClusterState = "READY"
	ClusterDeleted ClusterState = "DELETED" // tombstone
)

// ClusterStates lists all states in their order of life.
var ClusterStates = []ClusterState{ClusterReady, ClusterDeleted}

// A Cluster is the pool that workers join.
type Cluster struct {
	ID        ClusterID    `json:"id"`
	Name      string       `json:"name"`
	Owner     string       `json:"owner"`
	Kind      ClusterKind  `json:"kind"`
	State     ClusterState `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// A Worker is one host's daemon that registered in a cluster.
type Worker struct {
	ID           string    `json:"id"` // attempt's tag and host number: unique in the cluster
	Cluster      ClusterID `json:"cluster_id"`
	Glidein      GlideinID `json:"glidein_id"`
	Attempt      JobID     `json:"attempt_id"`
	Host         string    `json:"host"`
	PID          int       `json:"pid"`
	CPUs         int       `json:"cpus"`
	CPUsFree     int       `json:"cpus_free"`
	MemoryMiB    int       `json:"memory_mib"`
	Draining     bool      `json:"draining"` // takes no new task
	Connected    bool      `json:"connected"`
	RunningTasks int       `json:"running_tasks"`
	DoneTasks    int       `json:"done_tasks"`
	RegisteredAt time.Time `json:"registered_at"`
	SeenAt       time.Time `json:"seen_at"`
	EndsAt       time.Time `json:"ends_at"` // leaves by itself before this
}
