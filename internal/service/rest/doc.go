// Package rest turns requests into transactions on the store, and their outcomes into answers.
//
// It has what all routes of corrald have in common: the Router finds the Route of a request and writes every error,
// in one place, as a problem document; a Call is the request that a route answers; the Adapter makes a read or a
// Change of it; a Resource answers what can be asked of any kind of object: a list, one object, a wait for its state,
// its history. The routes themselves, and what they mean, are package server's; what a request may say is package
// request's.
//
// How a request moves:
//
//	Router ─► Route: is the query known? ─► Call ─► handler
//	    Read:    one View of the store ─► JSON
//	    Get:     with ?wait= a View after each commit about the object, until it is there ─► JSON
//	    Change:  body ─► key ─► is an answer kept? ─► prepare ─► Step in one transaction, with its answer ─► JSON
//	    error:   from wherever ─► Router ─► problem document, and at most one line in the log
//
// A client that waits is woken by the next commit about the object or by the next worker, never by a clock.
//
// The one invariant: a Change is one transaction with its history and with the answer that the idempotency key keeps. A
// client that got an answer finds the change after any crash; one that got none may repeat the request under its key.
//
// The package is the only one that knows echo, the router of HTTP requests.
package rest
