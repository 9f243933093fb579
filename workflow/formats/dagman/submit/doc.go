// Package submit parses HTCondor's submit descriptions, from which condor_submit makes jobs.
//
// A description is a list of commands, `name = value`, that are executed from top to bottom. A command sets a macro;
// commands and macros share their names, which are case-insensitive. A queue statement makes jobs from the current
// macros; each job has macros of its own (Process, and the items of a list). Only then are the macros in values
// expanded: $(name), $(name:default), and some functions.
//
// Parse parses a description once; Each executes it, for a node of a DAG with the node's macros, and calls a function
// for each job. The caller interprets the commands.
//
// The invariant: for any description, the memory and time are bounded by the limits of this package and those of the
// caller. The cost of executing it is charged to the caller's Given.Left: the bytes of values and of the texts from
// which they are made, and a few bytes for each statement, macro and item. The package opens no files itself.
package submit
