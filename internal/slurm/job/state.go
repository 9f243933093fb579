package job

// A State is Slurm's word for how far a job is.
type State string

// The states that a job of a shim can be in.
const (
	Pending   State = "PENDING"
	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Failed    State = "FAILED"
	Cancelled State = "CANCELLED"
	Timeout   State = "TIMEOUT"
	OutOfMem  State = "OUT_OF_MEMORY"
	NodeFail  State = "NODE_FAIL"
)

// A Reason is Slurm's word for why a job waits, or ended badly.
type Reason string

// The reasons that squeue may show.
const (
	None           Reason = "None"
	ForDependency  Reason = "Dependency"
	ForResources   Reason = "Resources"
	ForPriority    Reason = "Priority"
	NeverSatisfied Reason = "DependencyNeverSatisfied"
	NonZeroExit    Reason = "NonZeroExitCode"
	RaisedSignal   Reason = "RaisedSignal"
	TimeLimit      Reason = "TimeLimit"
	OutOfMemory    Reason = "OutOfMemory"
	NodeDown       Reason = "NodeDown"
)
