// Package server answers the REST requests of package api: it has the routes, and what each of them does.
//
// Each kind of object has its handlers, which list their routes in one table and know only what they need beside the
// store. A handler is one call of package rest: a Read of what is there, or a Change of it. rest.Resource handles the
// requests that all kinds have in common: a list, one object, a wait for its state, its history. Package request
// validates requests.
//
//	sites.go      rows of sites; visit.go has the requests for which corrald goes to the site before it answers
//	glideins.go   rows of glideins, with what is registered of them now
//	clusters.go   rows of clusters; pools.go starts, upgrades and stops those of kind condor
//	packages.go   the catalog of worker packages; mirrors.go, where their archives come from
//	runs.go       hands over to package run
//	logins.go     hands over to package login
//	profiles, tasks, tokens  packages of their own, for what needs nothing of the others
//	health.go     corrald itself, and its contract, openapi.yaml
//	reference.go  finds what a path, a parameter or a field names
//	config.go     what the server needs of others
//
// The server decides nothing about sites and jobs. It records what was asked, and the engine, woken by the same commit,
// does it. Recognizable mistakes are refused in the answer, because that is the last moment at which a person is there
// to read it. So a change has two parts. First, outside of any transaction, comes what takes long or asks somebody
// else: a site, a mirror, a port. Then comes the transaction, which looks again at what must still hold, writes the row
// with its history, and keeps the answer under the request's key. Each change is harmless to repeat: an object that is
// already on its way to the requested state is returned unchanged.
//
// The one invariant: a change is in the store before its answer is on the wire. (Cancelling, resuming and removing a
// run are package run's own transactions, right before the one that keeps the answer.)
//
// A new route is a line in a table and a handler, its operation in openapi.yaml, a method of api.Client and a section
// of docs/api.md. Tests compare the four.
package server
