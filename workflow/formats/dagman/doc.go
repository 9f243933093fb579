// Package dagman reads and writes DAGMan's files: a .dag with the nodes and their order, and a submit description for
// each node, in a separate file or inline.
//
// Read reads a .dag, and Write writes one. A Rescue lists the nodes that were done when a run stopped: ReadRescue reads
// it, Rescue.Mark marks the nodes as done in a workflow, and RescueOf and Rescue.Write make the file of a later run.
//
// A node becomes a task, or several tasks if its description queues several jobs; package submit reads the
// descriptions. DAGMan's other functions (scripts, categories, priorities, FINAL, ABORT-DAG-ON, DONE) are represented
// by the task's workflow.Control. The nodes of a SPLICE and of a SUBDAG EXTERNAL become tasks of the workflow whose ids
// begin with the name of the splice or sub-DAG and a plus sign; a sub-DAG also becomes a workflow.Subworkflow.
//
// Paths are relative to the folder of the .dag, as with condor_submit_dag -usedagdir. In the workflow, a job's input
// file is identified by its path relative to that folder; where the job runs, the file has the same name as with
// HTCondor (workflow.Task.Names). A missing submit description is not an error, because DAGMan opens it only when the
// node is submitted: the node becomes a task without a command, and a warning is added. The same applies to the file of
// a SUBDAG.
//
// A statement may precede the JOB to which it refers. Statements that name unknown nodes are deferred to the end of
// their file; all other text is read once and not stored. A small file cannot expand arbitrarily, because the numbers
// of bytes, tasks, edges and nested files are limited.
package dagman
