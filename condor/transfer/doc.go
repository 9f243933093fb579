// Package transfer is a plugin for HTCondor's file transfer: it fetches the inputs of a job that are URLs, by http and
// https.
//
// Plugin.Command is the main function of such a program; Default is the plugin that Corral's workers use. A starter
// asks a plugin once for its methods, and then starts it once for all URLs of a job: each URL is an ad in one file, and
// each result is an ad in another. If an input was not fetched, HTCondor holds the job with the result's reason, so
// reasons are sentences for the job's owner. Transient failures are retried first, because held jobs are not released
// automatically.
//
// The plugin serves no other methods. If a pool has no other plugin for them, it can claim them and refuse with a
// reason: otherwise HTCondor would leave the job idle.
package transfer
