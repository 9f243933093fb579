// Package forecast computes in the client, without corrald, what work would come to before anybody asks for a pilot:
//
//   - PlayEnsemble and PlayGrid simulate an ensemble of workflows: which of them an algorithm completes within a budget
//     and a deadline, on which machines, and why it does not complete the others.
//   - BookSlots plans a workflow on slots that sites offer: what to reserve, where and when, at which cost and
//     makespan, and the alternatives. planner/moga decides. A booking reserves nothing; its times count from the
//     instant of the offers.
//   - RankSites ranks sites for a whole workflow, before there are pilots: whether a site is viable, and if not the
//     first thing that it lacks; the expected wait, the runtime and the cost there. Package selection computes costs
//     and makes the choice.
//
// How fast a site's hosts are is learned from runs (profile.Speeds): a site at which tasks took 1.25 times as long as
// tasks of the same kinds elsewhere has a rate of 0.8 per cpu. Nothing else is known of a site's rate: clock speeds do
// not predict how fast a program runs, and sites do not publish a rate.
//
// The package is pure: offers, waits and the time are arguments.
package forecast
