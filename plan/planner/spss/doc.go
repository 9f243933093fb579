// Package spss plans an ensemble of workflows beforehand: SPSS, the static algorithm of Juve 2012, section 6.3 (also
// Malawski, Juve, Deelman and Nabrzyski, SC 2012). Workflow by workflow, in the order of priority, it gives each task a
// deadline of its own, and puts it where that costs least: into time that is paid already, else into a further period
// of a machine, else on a new one. A workflow whose plan would cost more than the budget, with those before it, is left
// out.
//
//	deadlines.go  each task's deadline: the workflow's slack, shared out among its levels
//	spss.go       Make: workflows one after the other, admitted or not
//	machine.go    what a plan has: machines with their tasks, gaps and paid time
//	offers.go     where a task may go on a machine, and which of two offers is better: the published search, machine
//	              by machine, linear in their number
//	index.go      the same choice by trees, logarithmic in it
//	treap.go      a tree that is searched by key and by attribute
//
// The search by trees finds an offer of the same cost and the same start as the published one. Where several are equal
// in both, the published search takes the first or the last machine that it looked at, and the trees take the gap that
// begins last, which is the tightest; tests hold the two beside each other.
package spss
