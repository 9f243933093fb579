// Package reuse knows what of a workflow has to run again, and keeps what that takes: the origin of each run, in its
// directory, and rescue files beside a .dag. Which tasks are out of date is a pure function of two workflows and of
// what is known of the earlier run (Outdated); package run asks it, and marks the others as done.
//
// A task that is marked as done never runs, for whatever reason it was marked. So a run is independent of changes and
// rescues.
package reuse
