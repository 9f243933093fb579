// Package workflow defines a workflow independently of its file format: tasks with their commands, files, needs and
// estimates, and the graph between them. It does no I/O; the packages below it read and write files, and
// workflow/formats selects among them.
//
// A task's name is its transformation, which is the program or step that many tasks have in common; its id is unique. A
// file id is a path inside the run's data directory. An own input is a file that some task reads and no task writes: it
// is taken from the directory of the workflow file.
//
// Every reader feeds a Builder, which does the checks common to all formats. It refuses workflows that would run
// incorrectly: a cycle, a missing parent, a duplicate id. It warns if the meaning is clear: a task that reads a file of
// a task that is not its ancestor becomes that task's child, because otherwise the order would be random. With
// Options.Strict a warning is also an error. Every error is a *corral.Error of kind Invalid whose place is file:line.
//
// The invariant: Graph has exactly one node for each task, with the task's index. A valid graph does not imply that a
// workflow can be run; Runnable checks that. Traces of past runs often cannot be run: they name files outside any run's
// directory, or a file that two tasks write.
package workflow
