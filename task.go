package corral

// A worker passes a task its identity in environment variables. They describe this task alone: a task that submits
// other tasks does not pass them on.
const (
	RunVariable     = "CORRAL_RUN"     // number of the run
	IDVariable      = "CORRAL_TASK"    // id of the task in its run
	AttemptVariable = "CORRAL_ATTEMPT" // number of the attempt, from 1
	CPUsVariable    = "CORRAL_CPUS"    // number of cpus of the task
	NoteVariable    = "CORRAL_NOTE"    // in open runs: path of the file with the task's note
	ElementVariable = "CORRAL_ELEMENT" // in open runs: index of the task in its array, from 0

	EntryVariable     = "CORRAL_ENTRY"      // from `corral submit`: the line of --each-line for this task
	SubmitDirVariable = "CORRAL_SUBMIT_DIR" // from `corral submit`: the directory in which it was called
)

// PilotProgram, as the first word of a task's command, is replaced by the pilot program, which every worker has.
const PilotProgram = "@pilot"

// Causes of a task's end, in addition to its state.
const (
	CauseMemory     = "memory"      // killed because it exceeded its memory limit
	CauseTime       = "time"        // killed because it exceeded its time limit
	CauseWithdrawn  = "withdrawn"   // cancelled; only in open runs
	CauseLostWorker = "lost-worker" // its worker was lost, and the task may begin only once
	CauseNever      = "never"       // a condition it waits for can no longer be met
)
