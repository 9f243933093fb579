// Package archtest keeps the shape of the repository: which package may import which, where each
// third-party module is at home, how large files and functions are, and habits that reviewers would
// otherwise have to watch for.
//
// It has no code, only tests; what they enforce stands in tables with a reason beside each line:
//
//   - layers and edges in edges_test.go: who may import whom
//   - homes in modules_test.go: who may import which third-party module
//   - exemptions and exemptStructs in exemptions_test.go: what may be larger than the budgets
//   - mutatorsLeft and chainsLeft, there too: what was larger when a budget was set, and may only become smaller
//
// To add a package, give it a place in layers and list its imports in edges. An entry that is not
// needed any longer fails too, so that the tables stay true.
package archtest
