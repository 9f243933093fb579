// Package ensemble defines the terms of running many workflows under one budget and one deadline (Juve 2012, chapter
// 6): the workflows by priority, the cost of a machine, the score of the completed workflows, and the view and the
// requests of a policy that provisions machines.
//
// A machine is billed as a whole: it is a virtual machine of a cloud, or a pilot at a site (corral-thesis, §1.6.12).
// Times are whole milliseconds from the ensemble's beginning, and money is in whole micro-units. No decision depends on
// a floating-point number, so decisions are the same on every machine.
package ensemble
