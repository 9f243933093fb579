// Package reuse determines which parts of a workflow have to run again, and stores the data needed for that: the
// origin of each run, in its directory, and rescue files beside a .dag. Which tasks are out of date is a pure
// function of two workflows and of the facts about the earlier run (Outdated); package run calls it, and marks the
// others as done.
//
// A task that is marked as done never runs, whatever the reason for the mark. So a run itself is independent of
// changes and rescues.
package reuse
