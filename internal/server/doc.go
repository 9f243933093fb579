// Package server answers the REST requests of package api from the store.
//
// Each kind of object has its handlers (siteHandlers, glideinHandlers, …), which list their routes in one table and
// know only what they need beside the store. What all kinds have in common, resource answers: a list, one object, a
// wait for its state, its history. What a request may say is package request's to judge.
//
// A handler is one call of the adapter: read for what only looks, change for what changes something. The adapter
// decodes strictly, carries the idempotency key into the transaction, encodes, and leaves every error to one place,
// which writes it as a problem document. A client that waits for workers or for a state is woken by the next commit
// about the object or by the cluster's next worker, never by a clock.
//
// The one invariant: a change is one transaction with its history and with the answer that the idempotency key keeps. A
// client that got an answer finds the change after any crash; one that got none may repeat the request under its key.
// (Cancelling, resuming and removing a run are internal/run's own transactions: they are harmless to repeat instead.)
//
// The server decides nothing about sites and jobs. It records what was asked, and the engine, woken by the same commit,
// does it.
package server
