// Package engine is the loop around reconcile: it observes sites, records what changed, decides, and
// acts.
//
// Each site has a goroutine of its own, so that one in trouble does not slow the others. A step of it
// is always the same: poll the site's live jobs in one round trip, record what was seen, load the
// recorded world, let reconcile decide, perform the actions. Before a site is asked for anything the
// intent is recorded; after a crash it is looked up by its tag before it is repeated.
//
// A siteLoop (loop.go, step.go) is made of parts, each of which owns what it remembers of its site:
//
//	line      the connection, the step's budget of commands, the pace, and the pen (line.go)
//	watch     what is seen of the live jobs, and what the ended ones said (watch.go, words.go, notes.go)
//	sender    jobs on their way to the site: intent, provision, description, submission (send.go, provide.go)
//	stager    whether the site has its packages (stage.go)
//	tokens    what workers of HTCondor's pools are let in with (tokens.go)
//	ends      jobs that are to end, and those that do not (ends.go)
//	remains   what is left at the site of jobs that are over (remains.go)
//	creds     by what corrald is logged in, and until when that is good (credentials.go)
//	trouble   what keeps us from the site, and for how long it is left alone (trouble.go)
//
// All of them belong to the loop's goroutine, so none has a lock. The loop reads the clock once for each step and hands
// the time down: within a step everything happens at the same moment, which is what makes a part's decisions testable.
// The memory of the parts saves work and is never the truth: a corrald that starts again with empty parts reads the
// same world from the store and does the same, at worst once more.
package engine
