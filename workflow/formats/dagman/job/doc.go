// Package job converts an HTCondor job to a task of a workflow (Task), and a task to a job (Settings). Each reads the
// commands that the other writes.
//
// The ids of a job's files are their paths relative to the folder of the .dag. workflow.Task.Names holds HTCondor's
// names for them where the job runs, if these differ from the ids: bare names unless paths are preserved. Commands that
// do not affect the process, such as log and notification, are ignored; for commands that may affect it but that a run
// does not support, there is a warning.
package job
