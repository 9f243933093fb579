// Package moga searches for the slots of sites from which to make a plan if cost and makespan conflict. It returns a
// set of plans that do not dominate each other, and chooses one of them by the user's trade-off.
//
// It is the multi-objective genetic algorithm of Fonseca and Fleming (Genetic algorithms for multiobjective
// optimization, ICGA 1993) in the form that Singh uses (PhD thesis, University of Southern California, 2008, section
// 4.5, equations 8 to 14). A chromosome has a bit for each slot. Its rank is one more than the number of chromosomes
// that dominate it. Fitness falls with rank, and is shared among neighbours. Parents are drawn in proportion to
// fitness, crossed at two points, and mutated. An archive keeps every choice that was not dominated when it was made;
// the archive is the result, because the population may lose good choices.
//
//	search.go    the loop: evaluate in parallel, archive, breed
//	fitness.go   ranks, niches, shared fitness
//	breed.go     selection, crossover, mutation
//	front.go     the archive, and the choice from it by trade-off, deadline and budget
//
// Differences from the thesis: two chromosomes of the first population are given, not drawn: all slots, and all
// extensible slots, which random chromosomes practically never match (Options.Published omits them). A choice without
// room for the workflow is dominated by all feasible ones, and never archived. Among equal points only one is kept.
//
// The invariant: no member of a front dominates or equals another, and the same problem, options and seed yield the
// same front, for any number of workers. All randomness comes from the seed.
package moga
