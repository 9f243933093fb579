// Package profile says what tasks are like: how long those of one transformation run, what they need and how much
// that varies, learned from tasks that were measured; and it estimates tasks that have not run yet.
//
// A Sample holds the measured use of one successful execution of a task. Failed attempts are the caller's to leave out:
// their numbers say nothing about the task. A Profile summarises samples by transformation (the program or step that
// many tasks have in common), and by level in the workflow where the levels of a transformation differ. Each of these
// is a Class, with count, mean, standard deviation and extremes of every Metric, and with a bounded set of the samples
// themselves for quantiles and models. An Estimator fits one Model to each class, and Findings tell what is odd about a
// class, such as reading its input several times over.
//
// The definitions are those of Juve 2012, chapter 5: runtime from the start of the first process to the end of the
// last; bytes read and written summed over processes; memory as the peak; utilization as cpu time over runtime, which
// exceeds 1 for a task that keeps two cpus busy.
//
// Units: metrics are float64 in seconds, bytes or, for utilization, a fraction of one cpu; a Metric's name ends with
// its unit. Estimates are durations and bytes. A measured value of 0 is a value; what was not measured is not set.
//
// The one invariant: merging loses nothing and does not depend on order. A profile of two runs equals the merge of
// the profiles of each, up to rounding, because statistics add up, and because the samples that are kept are chosen
// by a hash of run and task.
//
// It measures nothing, reads no clock, and has no data about machines. It learns how much faster one type of host is
// than another from transformations that ran on both (Speeds). It draws no random numbers: a caller that wants an
// outcome passes a number from 0 to 1 (Estimate.Draw).
package profile
