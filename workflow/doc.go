// Package workflow is a workflow as Corral sees it, whatever its file format: tasks with their commands,
// files, needs and estimates, and the graph between them. It reads and writes WfFormat 1.5, the JSON
// format of WfCommons, which holds structure, commands and measured runtimes in one file.
//
// A task's name is its transformation, the program or step that many tasks have in common; its id is
// its own. A file id is a path below the run's data directory. An own input is a file that a task reads
// and none writes: it is taken from beside the workflow file.
//
// Reading is strict where a mistake would run something wrong: a cycle, a missing parent, an id given
// twice, a file with two writers, a number that makes no sense, an unknown field in x-corral. It warns
// where the meaning is clear: an unknown field elsewhere, lists of parents and children that disagree
// (an edge in either counts), a task that reads what a task that is not its ancestor writes (it becomes
// its child: otherwise the order would be chance). With Options.Strict these are errors too. Every
// error is a *corral.Error of kind Invalid whose place is file:line, with a column where it is known.
//
// The one invariant: Graph has exactly one node for each task, with the task's index. Whether a
// workflow is sound as a graph says nothing about whether it can be run; that is what Runnable is for.
// Traces of past runs often cannot: they name files outside any run's directory.
//
// WfFormat has no place for some of what a run needs; these are in the object x-corral of a
// specification task, described by docs/x-corral.schema.json. Not kept are the measured energy and
// power, and a task's priority: the order of a run follows from its graph.
package workflow
