// Package server answers the REST requests of package api: it has the routes, and what each of them does.
//
// Each kind of object has its handlers, which list their routes in one table and know only what they need beside the
// store. A handler is one call of package rest: a Read of what is there, or a Change of it. rest.Resource handles the
// requests that all kinds have in common: a list, one object, a wait for its state, its history. Package request
// validates requests; package admit decides about those for new objects, and creates their rows.
//
//	sites.go      rows of sites; visit.go has the requests for which corrald goes to the site before it answers
//	glideins.go   rows of glideins, with what is registered of them now
//	clusters.go   rows of clusters; pools.go starts, upgrades and stops those of kind condor
//	packages.go   the catalog of worker packages; mirrors.go, where their archives come from
//	runs.go       hands over to package run
//	logins.go     hands over to package login
//	ensembles.go  drafts an ensemble and keeps it; package internal/work/ensembles carries it out
//	plans.go      makes, keeps and releases plans; package planning makes them
//	profiles.go   keeps profiles of workflows
//	scales.go     keeps how a cluster follows its queue; package scaling does it
//	tasks.go      tasks of runs, with what they have printed
//	backlogs.go   what a site's batch system shows of a queue; orphans, what it has of ours that the store has not
//	tokens.go     makes and revokes tokens
//	owners.go     suspends owners and begins their ends; package internal/service/owners finishes these
//	usages.go     what owners have used
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
// A new route is a line in a table and a handler, its operation in openapi.yaml and a method of api.Client. Tests
// compare the three. Tests also write docs/api.md from openapi.yaml, and replay the requests of docs/api-examples.md.
package server
