package slurm

import (
	"slices"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A state is Slurm's name for the state of a job.
type state string

// The states that a job of a shim can be in.
const (
	pending    state = "PENDING"       // waits for others, or for a worker
	running    state = "RUNNING"       // on a worker
	completing state = "COMPLETING"    // was cancelled, and is cleaning up
	completed  state = "COMPLETED"     // with status 0
	failed     state = "FAILED"        // with another status, by a signal, or never started
	cancelled  state = "CANCELLED"     // by its user, running or not
	timeout    state = "TIMEOUT"       // killed at its time limit
	outOfMem   state = "OUT_OF_MEMORY" // killed for exceeding its memory
	nodeFail   state = "NODE_FAIL"     // its worker was lost, and it must not be restarted
)

// states lists all states of Slurm with their codes, in the order in which squeue lists them if a state is unknown.
// Corral's jobs are never in the states that are written as literals.
var states = []struct {
	state state
	code  string
}{
	{pending, "PD"}, {running, "R"}, {"SUSPENDED", "S"}, {completed, "CD"}, {cancelled, "CA"}, {failed, "F"},
	{timeout, "TO"}, {nodeFail, "NF"}, {"PREEMPTED", "PR"}, {"BOOT_FAIL", "BF"}, {"DEADLINE", "DL"}, {outOfMem, "OOM"},
	{completing, "CG"}, {"CONFIGURING", "CF"}, {"RESIZING", "RS"}, {"RESV_DEL_HOLD", "RD"}, {"REQUEUED", "RQ"},
	{"REQUEUE_FED", "RF"}, {"REQUEUE_HOLD", "RH"}, {"REVOKED", "RV"}, {"SIGNALING", "SI"}, {"SPECIAL_EXIT", "SE"},
	{"STAGE_OUT", "SO"}, {"STOPPED", "ST"},
}

// code returns the state's code of at most three letters.
func (s state) code() string {
	for _, c := range states {
		if c.state == s {
			return c.code
		}
	}
	return "?"
}

// over reports whether a job in this state has ended.
func (s state) over() bool { return s != pending && s != running && s != completing }

// parseState parses a state's name or code, in any case.
func parseState(text string) (state, bool) {
	for _, c := range states {
		if strings.EqualFold(text, string(c.state)) || strings.EqualFold(text, c.code) {
			return c.state, true
		}
	}
	return "", false
}

// tasksIn returns the states of tasks that can correspond to the given states of jobs; none: all states.
func tasksIn(wanted []state) (tasks []corral.TaskState) {
	for _, s := range wanted {
		switch {
		case s == pending: // a skipped task may be a job whose condition can no longer be met
			tasks = append(tasks, corral.TaskWaiting, corral.TaskReady, corral.TaskSkipped)
		case !s.over():
			tasks = append(tasks, corral.TaskRunning)
		case s == completed:
			tasks = append(tasks, corral.TaskDone)
		default:
			// If a job's dependency failed, it is cancelled if its user requested that, and otherwise keeps waiting, as
			// in Slurm.
			tasks = append(tasks, corral.TaskFailed, corral.TaskSkipped)
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// A reason is Slurm's name for the reason why a job waits, or failed.
type reason string

// The reasons that squeue may show.
const (
	noReason       reason = "None"
	forDependency  reason = "Dependency"               // the condition is not met yet
	forResources   reason = "Resources"                // it is next in line for a worker
	forPriority    reason = "Priority"                 // other jobs precede it
	forArray       reason = "JobArrayTaskLimit"        // the limit of its array is reached
	neverSatisfied reason = "DependencyNeverSatisfied" // the condition can no longer be met
	nonZeroExit    reason = "NonZeroExitCode"
	launchFailure  reason = "JobLaunchFailure" // also after a signal
	atTimeLimit    reason = "TimeLimit"
	atMemoryLimit  reason = "OutOfMemory"
	nodeDown       reason = "NodeDown"
)

// ends maps the causes of a task's failure to the job's state, the reason, and the exit code in place of that of its
// process: Slurm sends SIGTERM, and clients recognize such jobs by that signal.
var ends = map[string]struct {
	state  state
	reason reason
	exit   notation.ExitCode
}{
	corral.CauseMemory:     {outOfMem, atMemoryLimit, notation.ExitCode{Signal: 125}}, // like Slurm
	corral.CauseTime:       {timeout, atTimeLimit, notation.ExitCode{Signal: int(syscall.SIGTERM)}},
	corral.CauseLostWorker: {nodeFail, nodeDown, notation.ExitCode{}},
	corral.CauseNever:      {cancelled, noReason, notation.ExitCode{}},
	corral.CauseWithdrawn:  {cancelled, noReason, notation.ExitCode{}},
}

// blames reports whether squeue shows the reason in place of the node on which a job ran.
func (r reason) blames() bool {
	return r == nonZeroExit || r == launchFailure || r == atTimeLimit || r == atMemoryLimit
}
