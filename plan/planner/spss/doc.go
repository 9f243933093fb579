// Package spss plans an ensemble of workflows in advance: SPSS, the static algorithm of Juve 2012, section 6.3 (also
// Malawski, Juve, Deelman and Nabrzyski, SC 2012). Workflow by workflow, by priority, it assigns each task a deadline
// of its own, and places the task where it costs least: in paid time, otherwise in an additional period of a machine,
// otherwise on a new machine. A workflow is rejected if the plan, including the workflows before it, would exceed the
// budget.
//
//	deadlines.go  each task's deadline: the workflow's slack, distributed among its levels
//	spss.go       Make: plans one workflow after another, and admits or rejects it
//	machine.go    the content of a plan: machines with their tasks, gaps and paid time
//	offers.go     the possible places of a task on a machine, and their order: the published search, which is linear
//	              in the number of machines
//	index.go      the same choice with trees, in logarithmic time
//	treap.go      a tree that is searched by key and by attribute
//
// The search with trees finds an offer with the same cost and the same start as the published search. If several offers
// are equal in both, the published search chooses the first or the last machine that it examines, and the search with
// trees chooses the gap that begins last, which is the tightest; tests compare the two.
package spss
