// Package owners removes an owner's objects while the account is being ended.
//
// Ending an owner sets its row to ENDING; this package does the rest. A Keeper checks the owner repeatedly: each
// check reads the remaining objects and performs the steps that are possible now. Nothing is remembered between checks,
// so if corrald is killed at any instant, the next one continues.
//
// The order follows from the dependencies. The objects that request others are removed first: tokens (with the row, in
// one transaction), scales, ensembles, plans. The users of pilots follow: runs. Then the pilots are removed and, when
// the last one is gone, their sites, by the same cleanup job as `corral site remove`, and their clusters. The ssh key
// is removed last, because it is needed to reach the sites. Records remain: runs with their directories, histories,
// usage.
package owners
