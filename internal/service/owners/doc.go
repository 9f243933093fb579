// Package owners removes what an owner has whose account is being ended.
//
// Ending an owner is a row that says ENDING, and what follows from it here. A Keeper looks at the owner again and
// again: each look reads what the owner still has and does what can be done about it. Nothing is remembered between
// looks, so a corrald that is killed at any instant goes on where it was.
//
// The order is that of need. First goes what asks for new things: tokens (with the row, in one transaction), scales,
// ensembles, plans. Then what uses pilots: runs. Then pilots, and when the last one is gone their sites, by the same
// cleanup job as `corral site remove`, and their clusters. The ssh key is removed last, since sites are reached with
// it. Records remain: runs with their directories, histories, what was used.
package owners
