// Package ensemble has the terms of many workflows under one budget and one deadline (Juve 2012, chapter 6): the
// workflows in the order of their priorities, what a machine costs, which workflows were completed and what that is
// worth, and the view and the requests of the policy that decides about machines.
//
// A machine is billed as a whole: it is a virtual machine of a cloud, or a pilot of a site (corral-thesis, §1.6.12).
// Times are whole milliseconds from the ensemble's beginning, money is in whole micro-units, and no decision rests on a
// floating-point number: what is decided here is decided alike on every machine.
package ensemble
