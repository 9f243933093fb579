// Package submit reads HTCondor's submit descriptions: what condor_submit makes jobs of.
//
// A description is a list of commands, `name = value`, that are obeyed from top to bottom. A command sets a macro; the
// names of commands and macros differ in nothing, and not in their case. A queue statement makes jobs of the macros
// as they are then, each job with macros of its own (Process, and the items of a list). Only there are the macros
// in the values expanded: $(name), $(name:default), some functions.
//
// Parse reads a description once; Each obeys it, for a node of a DAG with the node's macros, and calls for each job.
// The caller interprets the commands.
//
// The one invariant: whatever a description says, the memory and time that it takes are bounded, by the limits of this
// package and those of the caller. The cost of obeying it is charged to the caller's Given.Left: the bytes of values
// and of what they are made of, and a few for each statement, macro and item. It opens nothing itself.
package submit
