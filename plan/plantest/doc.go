// Package plantest has workflows, ensembles and problems for tests of planners and for benchmarks: worked examples, and
// others that are drawn at random. The same source of chance draws the same ones, in tests as in benchmarks.
package plantest
