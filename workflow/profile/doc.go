// Package profile describes the behaviour of tasks: how long the tasks of one transformation run, which resources they
// need, and how much both vary. It learns this from measured tasks, and estimates tasks that have not run yet.
//
// A Sample holds the resources that one successful execution of a task was measured to use. The caller must leave out
// failed attempts, because their numbers are not representative of the task. A Profile summarises samples by
// transformation (the program or step that many tasks have in common), and also by level in the workflow if the levels
// of a transformation differ. Each of these summaries is a Class. It contains the count, mean, standard deviation and
// extremes of every Metric, and a limited number of the samples themselves for quantiles and models. An Estimator fits
// one Model to each class, and Findings report unusual behaviour of a class, for example that its tasks read their
// input several times.
//
// The definitions are those of chapter 5 of Juve 2012 (Gideon Juve: Resource Management for Scientific Workflows, PhD
// thesis, University of Southern California, 2012): the runtime is the time from the start of the first process to the
// end of the last; bytes read and written are summed over processes; memory is the peak; utilization is cpu time
// divided by runtime, which exceeds 1 for a task that keeps two cpus busy.
//
// Metrics are float64 in seconds, in bytes or, for utilization, as a fraction of one cpu; the name of a Metric ends
// with its unit. Estimates are durations and bytes. A measured 0 is a value like any other; a metric that was not
// measured is not set.
//
// The one invariant: merging profiles loses nothing, and its result does not depend on their order. A profile of two
// runs equals the merged profiles of the single runs, apart from rounding, because statistics can be added and because
// a hash of run and task determines which samples are kept.
//
// The package measures nothing, reads no clock, and contains no data about machines. It computes how much faster one
// type of host is than another from transformations that ran on both (Speeds). It draws no random numbers: a caller
// that wants a random outcome passes a number from 0 to 1 (Estimate.Draw).
package profile
