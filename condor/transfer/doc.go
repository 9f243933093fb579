// Package transfer is a plugin for HTCondor's file transfer: it fetches the inputs of a job that are URLs, by http and
// https.
//
// A starter asks a plugin once for its methods (Methods), and then starts it for all URLs of a job at once (Run): each
// is an ad in one file, and what became of each is an ad in another. HTCondor holds a job of which an input was not
// fetched, with the reason that stands there: so reasons are sentences for the job's owner. Transient failures are
// retried before that, since nothing releases a held job.
//
// Other methods it does not serve. In a pool where no other plugin serves them it claims them, too, and refuses with a
// reason: without one HTCondor would leave the job idle.
package transfer
