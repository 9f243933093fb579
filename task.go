package corral

// A worker tells a task who it is by variables in the task's environment. They are about this task alone: a task that
// submits others passes none of them on.
const (
	RunVariable     = "CORRAL_RUN"     // number of the run
	IDVariable      = "CORRAL_TASK"    // id of the task in its run
	AttemptVariable = "CORRAL_ATTEMPT" // which attempt at the task it is, from 1
	CPUsVariable    = "CORRAL_CPUS"    // how many the task has
	NoteVariable    = "CORRAL_NOTE"    // in open runs: path of the file with the task's note
	ElementVariable = "CORRAL_ELEMENT" // in open runs: which element of its array the task is, from 0

	EntryVariable     = "CORRAL_ENTRY"      // of `corral submit`: the line of --each-line that the task was made from
	SubmitDirVariable = "CORRAL_SUBMIT_DIR" // of `corral submit`: where that was called
)

// PilotProgram as the first word of a task's command stands for the pilot program, which every worker has.
const PilotProgram = "@pilot"

// Causes of the end of a task beside its state.
const (
	CauseMemory     = "memory"      // killed because it used more memory than it may have
	CauseTime       = "time"        // killed because its time limit was over
	CauseWithdrawn  = "withdrawn"   // cancelled; only in open runs
	CauseLostWorker = "lost-worker" // its worker was lost, and it is one that is begun once
	CauseNever      = "never"       // what it waits for cannot come any more
)
