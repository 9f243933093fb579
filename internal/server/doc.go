// Package server answers the REST requests of package api from the store.
//
// A handler is one call of an adapter: read for what only looks, change for what changes something.
// The adapters decode strictly, carry the idempotency key into the transaction, encode, and leave every
// error to one place, which writes it as a problem document. Who waits for workers or for a state is
// woken by the next commit about it or by the cluster's next worker, never by a clock.
//
// The one invariant: a change is one transaction with its history and with the answer that the
// idempotency key keeps. Whoever got an answer finds the change after any crash; whoever got none may
// repeat the request under its key. (Cancelling, resuming and removing a run are internal/run's own
// transactions: they are harmless to repeat instead.)
//
// The server decides nothing about sites and jobs. It records what was asked, and the engine, woken by
// the same commit, does it.
package server
