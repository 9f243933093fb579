// Package plantest has workflows, ensembles and problems for tests of planners and for benchmarks: worked examples, and
// others that are drawn at random. The same source of chance draws the same ones, in tests as in benchmarks.
//
//	Three, Diamond, Random   ensembles: the worked example of three workflows, one workflow, and drawn ones
//	Layers, Queue            problems: a workflow of layers, and a queue whose waits are drawn
//	Draw                     workflows of five applications in any size, by published distributions
//	SeismicHazard, Levels    wide workflows, in the shapes of published experiments
package plantest
