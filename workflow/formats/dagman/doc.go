// Package dagman reads and writes DAGMan's files: a .dag with the nodes and their order, and a submit description for
// each node, in a file of its own or inline.
//
// A node becomes a task, or several if its description queues several jobs; package submit reads the descriptions.
// DAGMan's other functions (scripts, categories, priorities, FINAL, ABORT-DAG-ON, DONE) become the task's
// workflow.Control. The nodes of a SPLICE and of a SUBDAG EXTERNAL are tasks of the workflow whose names begin with
// that of the splice or sub-DAG and a plus sign; a sub-DAG is also a workflow.Subworkflow.
//
// Paths are relative to the folder of the .dag, as with condor_submit_dag -usedagdir. A job's input file is identified
// in the workflow by its path relative to that folder, and has the name that HTCondor gives it where the job runs
// (workflow.Task.Names). A missing submit description is not an error, because DAGMan looks for it only when the node
// is submitted: its node becomes a task without a command, with a warning. The same applies to the file of a SUBDAG.
//
// A statement may precede the JOB to which it refers. Statements that name unknown nodes are deferred to the end of
// their file; all other text is read once and not stored. A small file cannot expand arbitrarily; there are limits on
// bytes, tasks, edges and nested files.
package dagman
