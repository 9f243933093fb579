// Package rest turns requests into transactions on the store, and their results into answers.
//
// It contains the parts common to all routes of corrald: the Router finds the Route of a request and writes all errors,
// in one place, as problem documents; a Call is the request that a route answers; the Adapter turns it into a read or a
// Change; a Resource answers the queries that all kinds of objects support: a list, one object, a wait for its state,
// its history. The routes themselves and their meaning are in package server; the validation of requests is in package
// request.
//
// The path of a request:
//
//	Router ─► Route: is the query known? ─► Call ─► handler
//	    Read:    one View of the store ─► JSON
//	    Get:     with ?wait= a View after each commit about the object, until the condition holds ─► JSON
//	    Change:  body ─► key ─► is an answer stored? ─► prepare ─► Step in one transaction, with its answer ─► JSON
//	    error:   from anywhere ─► Router ─► problem document, and at most one line in the log
//
// A waiting client is woken by the next commit about the object or by the next worker, never by a timer.
//
// The one invariant: a Change is one transaction, together with its history and the answer stored under the
// idempotency key. A client that got an answer finds the change after any crash; a client that got none may repeat
// the request with the same key.
//
// Only this package uses echo, the router of HTTP requests.
package rest
