// Package forecast computes in the client, without corrald, the results that work would have before any pilot is
// requested:
//
//   - PlayEnsemble and PlayGrid simulate an ensemble of workflows: which of the workflows an algorithm completes within
//     a budget and a deadline, on which machines, and why it does not complete the others.
//   - BookSlots plans a workflow on slots that sites offer: what to reserve, where and when, at which cost and
//     makespan, and the alternatives. planner/moga makes the decisions. A booking reserves nothing; its times are
//     relative to the instant of the offers.
//   - RankSites ranks sites for a whole workflow, before any pilots exist: whether a site is viable and, if not, the
//     first requirement that it does not meet; and the expected wait, runtime and cost at the site.
//
// The speed of a site's hosts is learned from runs (profile.Speeds): a site at which tasks took 1.25 times as long as
// tasks of the same kinds elsewhere has a rate of 0.8 per cpu. There is no other source for a site's rate: clock speeds
// do not predict how fast a program runs, and sites do not publish a rate.
//
// The package is pure: offers, waits and the time are arguments.
package forecast
