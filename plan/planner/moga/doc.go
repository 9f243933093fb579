// Package moga searches which of the slots that sites offer a plan should be made of, where cost and makespan pull in
// different directions: it returns a set of plans none of which is better than another in both, and picks one of them
// by how much the user cares for either.
//
// It is the multi-objective genetic algorithm of Fonseca and Fleming (Genetic algorithms for multiobjective
// optimization, ICGA 1993) in the form that Singh uses (PhD thesis, University of Southern California, 2008, section
// 4.5, equations 8 to 14): a chromosome is a bit for each slot; its rank is one more than the number of chromosomes
// that dominate it; fitness falls with rank, and is shared among those that are close to each other; parents are drawn
// in proportion to fitness, crossed at two points, and mutated. An archive keeps every choice that was not dominated
// when it was made; it is the answer. The population itself forgets.
//
//	search.go    the loop: evaluate side by side, archive, breed
//	fitness.go   ranks, niches, shared fitness
//	breed.go     selection, crossover, mutation
//	front.go     the archive, and the choice from it by trade-off, deadline and budget
//
// Differences from the thesis: two chromosomes of the first population are given and not drawn, all slots and all that
// are extensible, which random ones practically never are (Options.Published leaves them out); a choice in which the
// workflow finds no place is dominated by each other one, and never archived; and of equal points one is kept.
//
// The one invariant: no member of a front dominates or equals another, and the same problem, options and seed give the
// same front, with any number of workers. There is no other chance than that of the seed.
package moga
