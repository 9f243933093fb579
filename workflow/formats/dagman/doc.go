// Package dagman reads and writes DAGMan's files: a .dag with the nodes and the order between them, and a submit
// description for each node, in a file of its own or inline.
//
// A node becomes a task, or several if its description queues several jobs; package submit reads the descriptions.
// DAGMan's other functions (scripts, categories, priorities, FINAL, ABORT-DAG-ON, DONE) become the task's
// workflow.Control. The nodes of a SPLICE and of a SUBDAG EXTERNAL are tasks of the workflow, with the name of the
// splice or sub-DAG and a plus sign before theirs; a sub-DAG is a workflow.Subworkflow, too.
//
// Paths are relative to the folder of the .dag, as with condor_submit_dag -usedagdir. A job's input file is a file of
// the workflow by its path there, and bears the name that HTCondor gives it where the job runs (workflow.Task.Names). A
// missing submit description is not an error, because DAGMan looks for it only when the node is submitted: its node is
// a task without a command, and a warning says so. The same holds for the file of a SUBDAG.
//
// A statement may stand before the JOB that it is about. Those that name what is not known yet wait for the end of
// their file; everything else is read once and forgotten. A small file cannot become arbitrarily large; limits bound
// bytes, tasks, edges, files within files.
package dagman
