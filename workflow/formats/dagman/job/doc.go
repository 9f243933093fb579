// Package job is what a job of HTCondor is as a task of a workflow (Task), and a task as a job (Settings): the one
// reads the commands that the other writes.
//
// Of the files of a job the paths from the folder of the .dag are the ids. workflow.Task.Names has HTCondor's names for
// them where the job runs, if these differ from the ids: bare names unless paths are preserved. Commands that say
// nothing of what a process does, such as log and notification, are passed over; of those that a run does without
// although they may change it, a warning tells.
package job
