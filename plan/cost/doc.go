// Package cost computes the cost of resources and compares plans by it: exact money, rates and billing periods,
// and the Pareto front.
//
// ParseTariff parses the price of a site, and Tariff.Charge returns the cost of a pilot there. A Ledger is the account
// of a site, with the money spent and the amounts reserved for plans. Pareto compares choices of resources.
//
// Money is counted in whole micro-units of a currency or of an allocation. It is parsed from exact decimals. Each
// product is computed exactly and rounded once, half up, to a micro-unit; sums add such products. A figure printed with
// two digits is therefore the rounded total, not a total of rounded figures. An amount beyond the range (about 9
// million million units) saturates at the maximum, which exceeds every budget.
//
// Holding processors has two costs: the actual cost is for the time held, and the billed cost is for whole billing
// periods. Both are for allocated time. Some papers compare clouds by the cost of the cpu time that tasks used, which
// is a different and smaller number.
//
// The invariant: the actual cost never exceeds the billed cost, and the two are equal for whole periods.
//
// The formulas and rules are those of chapter 4 of Juve 2012 (Gideon Juve: Resource Management for Scientific
// Workflows, PhD thesis, University of Southern California, 2012), which comments call the thesis. The package does not
// support exchange rates, taxes or discounts, and never adds amounts of different units.
package cost
