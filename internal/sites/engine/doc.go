// Package engine observes each site, lets reconcile decide, and carries out the actions.
//
// Each site has its own goroutine, so that trouble at one does not slow the others. Each step is the same: poll the
// site's live jobs in one round trip, record the observations, load the recorded world, let reconcile decide, perform
// the actions. The engine records each intent before it sends the request to the site; after a crash it looks the job
// up by its tag before it repeats the request.
//
// A siteLoop (loop.go, step.go) consists of parts, each of which has its own memory of the site:
//
//	line      the connection, the step's budget of commands, the pace, and the records (line.go)
//	watch     observations of the live jobs, and the output of ended ones (watch.go, reports.go)
//	sender    submissions to the site: intent, provision, description, submission (send.go, provide.go)
//	stager    the packages that the site has (stage.go)
//	tokens    tokens that admit workers to HTCondor pools (tokens.go)
//	ends      jobs to be ended, and those that fail to end (ends.go)
//	remains   files at the site of jobs that have ended (remains.go)
//	creds     the credentials of corrald's logins, and how long they are valid (credentials.go)
//	trouble   the obstacles to reaching the site, and when to try again (trouble.go)
//
// All of them belong to the loop's goroutine, so none has a lock. The loop reads the clock once for each step and
// passes the time down: within a step everything happens at the same moment, which makes the parts' decisions
// testable. The parts' memory saves work and is never authoritative: a restarted corrald with empty parts reads the
// same world from the store and does the same, at worst repeating some work once.
package engine
