// Package plantest provides workflows, ensembles and problems for tests of planners and for benchmarks: worked
// examples, and random ones. The same random source yields the same examples in tests and benchmarks.
//
//	Three, Diamond, Random   ensembles: the worked example of three workflows, a single workflow, and random ones
//	Layers, Queue            problems: a workflow of layers, and a queue with random waits
//	Draw                     workflows of five applications in any size, from published distributions
//	SeismicHazard, Levels    wide workflows in the shapes of published experiments
package plantest
