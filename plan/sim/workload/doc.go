// Package workload provides jobs of a parallel machine, from traces or from a model. ReadJobs reads a trace in the
// Standard Workload Format; Draw uses the model of Lublin and Feitelson. Both yield jobs for package plan/sim/queue,
// sorted by submission, and Header.Machine returns the size of the machine of a trace.
//
// Submit times count from the first job of a trace, or from midnight in the model. The jobs are rigid: they need a
// fixed number of processors for a runtime, and request a time. Traces also contain memory, executables and dependences
// between jobs; the package ignores them.
package workload
