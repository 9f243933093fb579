// Package submit parses HTCondor's submit descriptions, from which condor_submit creates jobs.
//
// A description is a list of commands, `name = value`, that are executed from top to bottom. A command sets a macro;
// the names of commands and macros are the same, and are case-insensitive. A queue statement creates jobs from the
// current macros; each job has additional macros of its own (Process, and the items of a list). The macros in values
// are expanded only when jobs are created: $(name), $(name:default), and some functions.
//
// Parse parses a description once; Each executes the description for a node of a DAG, with the node's macros, and calls
// a function for each job. The caller interprets the commands.
//
// The invariant: for any description, the memory and time required are bounded by the limits of this package and of the
// caller. The cost of executing a description is charged to the caller's Given.Left: the bytes of values and of the
// texts from which the values are derived, and a few bytes for each statement, macro and item. The package opens no
// files itself.
package submit
