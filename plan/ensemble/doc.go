// Package ensemble defines the terms of running many workflows under one budget and one deadline (Juve 2012, chapter
// 6): the workflows by priority, the cost of a machine, the score of the completed workflows, and the view and the
// requests of a policy that provisions machines.
//
// An Ensemble lists the workflows, Terms determine what a machine costs, and a Strategy decides from a View which
// machines to request or to end, and which workflows to begin. A Plan fixes all of this in advance. Policies are in
// plan/planner/dpds and plan/planner/spss; plan/sim/cloud simulates them. This package only defines what they share,
// and decides nothing.
//
// A machine is billed as a whole: it is a virtual machine of a cloud, or a pilot at a site. Times are whole
// milliseconds from the ensemble's beginning, and money is in whole micro-units. No decision depends on a
// floating-point number, so decisions are the same on every machine.
//
// Juve 2012, which comments also call the thesis, is Gideon Juve: Resource Management for Scientific Workflows, PhD
// thesis, University of Southern California, 2012.
package ensemble
