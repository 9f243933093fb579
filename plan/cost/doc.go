// Package cost says what resources cost, and which of several plans is worth its price: exact money, rates and billing
// periods, published price lists, the Pareto set, and what one more node is worth.
//
// Money is counted in whole micro-units, of a currency or of what an allocation is made of. It is read from exact
// decimals, every product is computed exactly and rounded once, half up, to a micro-unit, and sums are of these: a
// figure printed with two digits is the rounded total, and not a total of rounded figures. An amount that exceeds the
// range (some 9 million million units) stays at its maximum, which no budget reaches.
//
// Holding processors has two costs: the actual cost is that of the time they were held, and the billed cost that of
// whole billing periods. Bills are of allocated time. The cost of the cpu time that tasks used, with which some papers
// compare clouds, is another number, and a smaller one.
//
// The one invariant: actual never exceeds billed, and the two are equal for whole periods.
//
// The formulas and the rules are those of Juve 2012, chapter 4. A GB has 1,024 MB there and here. The package has no
// exchange rates, taxes or discounts. Amounts of different units are never added.
package cost
