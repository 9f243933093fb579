// Package workflow defines a workflow independently of its file format: tasks with their commands, files, needs and
// estimates, and the graph between them. It does no I/O; the packages below it read and write files, and
// workflow/formats selects among them.
//
// A program reads a Workflow with formats.ReadFile, or makes one with a Builder. Workflow.Summary and
// Workflow.Transformations return its key figures, and Workflow.Runnable reports what would prevent a run.
//
// A task's name is its transformation, i.e. the program or step that many tasks have in common; its id is unique. A
// file id is a path inside the run's data directory. An own input of the workflow is a file that some task reads and no
// task writes: it is taken from the directory of the workflow file. Sizes of files are in bytes, the needs of tasks in
// MiB.
//
// Every reader passes the contents of its file to a Builder, which performs the checks common to all formats. The
// Builder refuses workflows that would run incorrectly, for example because of a cycle, a missing parent or a duplicate
// id. It merely warns if the meaning is clear: if a task reads a file but is not a descendant of the task that writes
// the file, the reader becomes a child of the writer, because otherwise their order would be random. With
// Options.Strict a warning becomes an error. Every error is a *corral.Error of kind Invalid whose place is file:line.
//
// The invariant: Graph has exactly one node for each task, with the task's index. A valid graph does not imply that a
// workflow can be run. Traces of past runs often cannot be run, because they name files outside any run's directory, or
// a file that two tasks write.
package workflow
