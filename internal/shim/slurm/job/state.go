package job

import "strings"

// A State is Slurm's name for the state of a job.
type State string

// The states that a job of a shim can be in.
const (
	Pending   State = "PENDING"       // waits for others, or for a worker
	Running   State = "RUNNING"       // on a worker
	Completed State = "COMPLETED"     // with status 0
	Failed    State = "FAILED"        // with another status, by a signal, or never started
	Cancelled State = "CANCELLED"     // by its user, running or not
	Timeout   State = "TIMEOUT"       // killed at its time limit
	OutOfMem  State = "OUT_OF_MEMORY" // killed for exceeding its memory
	NodeFail  State = "NODE_FAIL"     // its worker was lost, and it must not be restarted

	Completing State = "COMPLETING" // it was cancelled, and is cleaning up
)

// codes lists all states of Slurm with their codes, in the order in which squeue lists them if a state is unknown.
// Corral's jobs are never in the states that are written as literals.
var codes = []struct {
	state State
	code  string
}{
	{Pending, "PD"}, {Running, "R"}, {"SUSPENDED", "S"}, {Completed, "CD"}, {Cancelled, "CA"}, {Failed, "F"},
	{Timeout, "TO"}, {NodeFail, "NF"}, {"PREEMPTED", "PR"}, {"BOOT_FAIL", "BF"}, {"DEADLINE", "DL"}, {OutOfMem, "OOM"},
	{Completing, "CG"}, {"CONFIGURING", "CF"}, {"RESIZING", "RS"}, {"RESV_DEL_HOLD", "RD"}, {"REQUEUED", "RQ"},
	{"REQUEUE_FED", "RF"}, {"REQUEUE_HOLD", "RH"}, {"REVOKED", "RV"}, {"SIGNALING", "SI"}, {"SPECIAL_EXIT", "SE"},
	{"STAGE_OUT", "SO"}, {"STOPPED", "ST"},
}

// Code returns the state's code of at most three letters.
func (s State) Code() string {
	for _, c := range codes {
		if c.state == s {
			return c.code
		}
	}
	return "?"
}

// Over reports whether a job in this state has ended.
func (s State) Over() bool { return s != Pending && s != Running && s != Completing }

// ParseState parses a state's name or code, in any case.
func ParseState(text string) (State, bool) {
	for _, c := range codes {
		if strings.EqualFold(text, string(c.state)) || strings.EqualFold(text, c.code) {
			return c.state, true
		}
	}
	return "", false
}

// A Reason is Slurm's name for the reason why a job waits, or failed.
type Reason string

// The reasons that squeue may show.
const (
	None           Reason = "None"
	ForDependency  Reason = "Dependency"               // the condition is not met yet
	ForResources   Reason = "Resources"                // it is next in line for a worker
	ForPriority    Reason = "Priority"                 // other jobs precede it
	ForArray       Reason = "JobArrayTaskLimit"        // the limit of its array is reached
	NeverSatisfied Reason = "DependencyNeverSatisfied" // the condition can no longer be met
	NonZeroExit    Reason = "NonZeroExitCode"
	LaunchFailure  Reason = "JobLaunchFailure" // also after a signal
	TimeLimit      Reason = "TimeLimit"
	OutOfMemory    Reason = "OutOfMemory"
	NodeDown       Reason = "NodeDown"
)

// blames reports whether squeue shows the reason in place of the node on which a job ran.
func (r Reason) blames() bool {
	return r == NonZeroExit || r == LaunchFailure || r == TimeLimit || r == OutOfMemory
}
