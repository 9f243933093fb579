// Package workload provides jobs of a parallel machine, either from a trace in the Standard Workload Format (Read) or
// from the model of Lublin and Feitelson (Draw). Both yield jobs for package queue.
package workload
