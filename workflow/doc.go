// Package workflow is a workflow as Corral sees it, whatever file it comes from: tasks with their commands, files,
// needs and estimates, and the graph between them. It does no I/O and is independent of formats; the packages below it
// read and write files, and workflow/formats is where to ask for any of them.
//
// A task's name is its transformation, the program or step that many tasks have in common; its id is its own. A file id
// is a path below the run's data directory. An own input is a file that some task reads and no task writes: it is taken
// from beside the workflow file.
//
// Every reader feeds a Builder, which checks what all formats have in common. It refuses what would run something
// wrong: a cycle, a missing parent, an id given twice. It warns where the meaning is clear: a task that reads what a
// task that is not its ancestor writes becomes that task's child, because otherwise the order would be chance. With
// Options.Strict a warning is an error, too. Every error is a *corral.Error of kind Invalid whose place is file:line.
//
// The one invariant: Graph has exactly one node for each task, with the task's index. Whether a workflow is sound as a
// graph says nothing about whether it can be run; that is what Runnable is for. Traces of past runs often cannot: they
// name files outside any run's directory, or a file that two tasks write.
package workflow
