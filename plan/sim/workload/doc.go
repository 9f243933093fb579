// Package workload makes the jobs of a parallel machine: from a trace in the Standard Workload Format (Read), or drawn
// from the model of Lublin and Feitelson (Draw). Both give jobs that package queue plays.
package workload
