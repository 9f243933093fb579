package job

import "strings"

// A State is Slurm's word for how far a job is.
type State string

// The states that a job of a shim can be in.
const (
	Pending   State = "PENDING"       // waits for others, or for a worker
	Running   State = "RUNNING"       // on a worker
	Completed State = "COMPLETED"     // with status 0
	Failed    State = "FAILED"        // with another status, by a signal, or never started
	Cancelled State = "CANCELLED"     // by its user, running or not
	Timeout   State = "TIMEOUT"       // killed when its time was over
	OutOfMem  State = "OUT_OF_MEMORY" // killed when it used too much
	NodeFail  State = "NODE_FAIL"     // its worker was lost, and it is not to run again

	Completing State = "COMPLETING" // it was cancelled, and has the time to tidy up
)

// codes has all states of Slurm, in the order in which squeue lists them for a user who asks for another, and their
// codes. All but ours are empty here at all times.
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

// Code is the state in at most three letters.
func (s State) Code() string {
	for _, c := range codes {
		if c.state == s {
			return c.code
		}
	}
	return "?"
}

// Over says whether a job in this state will do nothing more.
func (s State) Over() bool { return s != Pending && s != Running && s != Completing }

// ParseState reads a state's name or code, in any case.
func ParseState(text string) (State, bool) {
	for _, c := range codes {
		if strings.EqualFold(text, string(c.state)) || strings.EqualFold(text, c.code) {
			return c.state, true
		}
	}
	return "", false
}

// A Reason is Slurm's word for why a job waits, or ended badly.
type Reason string

// The reasons that squeue may show.
const (
	None           Reason = "None"
	ForDependency  Reason = "Dependency"               // what it waits for has not come yet
	ForResources   Reason = "Resources"                // the next that a worker gets
	ForPriority    Reason = "Priority"                 // after that one
	ForArray       Reason = "JobArrayTaskLimit"        // enough of its array run
	NeverSatisfied Reason = "DependencyNeverSatisfied" // what it waits for cannot come any more
	NonZeroExit    Reason = "NonZeroExitCode"
	LaunchFailure  Reason = "JobLaunchFailure" // also of what a signal ended
	TimeLimit      Reason = "TimeLimit"
	OutOfMemory    Reason = "OutOfMemory"
	NodeDown       Reason = "NodeDown"
)

// blames says whether squeue shows the reason in place of the node on which a job ran.
func (r Reason) blames() bool {
	return r == NonZeroExit || r == LaunchFailure || r == TimeLimit || r == OutOfMemory
}
